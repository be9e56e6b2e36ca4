// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/mlx5dv/queue_pair.hpp"

#include <doorbell/error.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "rdma/verbs/context.hpp"

namespace doorbell::rdma {

namespace {

constexpr u32 kSendStride = Mlx5::kUnitParts * sizeof(Word16);
constexpr u32 kReceiveStride = Mlx5::kReceiveParts * sizeof(Word16);
constexpr u32 kCqeBytes = Mlx5::kCqeParts * sizeof(Word16);
constexpr u64 kQpRecordBytes = 2 * sizeof(u32);
constexpr u64 kCqRecordBytes = 2 * sizeof(u32);

/// One of the queues that libmlx5 describes.
struct Queue {
  const char* what;
  const void* buffer;
  const void* record;
  u32 entries;
  u32 entry_bytes;
  u32 wanted_bytes;
  u32 least;  ///< entries
  u32 most;
  const char* variable;  ///< environment variable that can change the entry's size
};

void check(const Queue& q) {
  const std::string what = fmt::format("the {} that libmlx5 has made", q.what);
  if (q.buffer == nullptr || q.record == nullptr)
    throw Error(what, "it does not say where it lies", "use a libmlx5 of rdma-core");
  if (reinterpret_cast<u64>(q.buffer) % sizeof(Word16) != 0)
    throw Error(what, fmt::format("it begins at {}, which is no multiple of 16", q.buffer));
  if (q.entry_bytes != q.wanted_bytes)
    throw Error(what, fmt::format("its entries take {} bytes, not {}", q.entry_bytes, q.wanted_bytes),
                fmt::format("unset {}", q.variable));
  if (!std::has_single_bit(q.entries) || q.entries < q.least || q.entries > q.most)
    throw Error(
        what,
        fmt::format("it has {} entries, which is no power of two in {}..{}", q.entries, q.least, q.most),
        "give another number of operations in flight, or inline fewer bytes");
}

/// ibv_create_qp() would let the NIC put up to 64 bytes of a response into the completion entry instead of
/// the buffer. libmlx5 copies them from there when it polls, but here the initiator polls.
ibv_qp* create_without_scatter(const Mlx5Library& mlx5, const VerbsContext& c, ibv_qp_init_attr& init) {
  ibv_qp_init_attr_ex extended = {};
  extended.send_cq = init.send_cq;
  extended.recv_cq = init.recv_cq;
  extended.cap = init.cap;
  extended.qp_type = init.qp_type;
  extended.sq_sig_all = init.sq_sig_all;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD;
  extended.pd = c.pd;
  mlx5dv_qp_init_attr own = {};
  own.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  own.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  ibv_qp* const qp = mlx5.create_qp(c.context, &extended, &own);
  init.cap = extended.cap;
  return qp;
}

Mlx5Queues describe(const Mlx5Library& mlx5, const VerbsQueuePairObject& q, const std::string& device) {
  Mlx5Queues out;
  mlx5dv_obj object = {};
  object.qp = {q.qp(), &out.qp};
  object.cq = {q.send_cq(), &out.send_cq};
  int rc = mlx5.init_obj(&object, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ);
  object.cq = {q.recv_cq(), &out.recv_cq};
  if (rc == 0) rc = mlx5.init_obj(&object, MLX5DV_OBJ_CQ);
  if (rc != 0)
    verbs_failed(fmt::format("the layout of queue pair {} of {}", q.qp()->qp_num, device), rc > 0 ? rc : -rc,
                 "libmlx5 and libibverbs must be of the same rdma-core");
  return out;
}

}  // namespace

QueuePairMemory mlx5_memory(const Mlx5Queues& queues, const QueuePairShape& shape, u32 qpn) {
  const auto& [qp, send_cq, recv_cq] = queues;
  constexpr u32 kMostCqes = 1u << 23;  // the consumer index has 24 bits
  const u32 inlined = std::min(shape.max_inline, Mlx5::kMaxInline);
  check({"send queue", qp.sq.buf, qp.dbrec, qp.sq.wqe_cnt, qp.sq.stride, kSendStride,
         Mlx5::sq_units(shape.sq_requests, inlined), Mlx5::kMaxSqUnits, "MLX5_QP_SIGNATURE"});
  check({"receive queue", qp.rq.buf, qp.dbrec, qp.rq.wqe_cnt, qp.rq.stride, kReceiveStride,
         Mlx5::rq_entries(shape.rq_requests), Mlx5::kMaxSqUnits, "MLX5_QP_SIGNATURE"});
  check({"completion queue of requests", send_cq.buf, send_cq.dbrec, send_cq.cqe_cnt, send_cq.cqe_size,
         kCqeBytes, Mlx5::cq_entries(shape.sq_requests), kMostCqes, "MLX5_CQE_SIZE"});
  check({"completion queue of receives", recv_cq.buf, recv_cq.dbrec, recv_cq.cqe_cnt, recv_cq.cqe_size,
         kCqeBytes, Mlx5::cq_entries(shape.rq_requests), kMostCqes, "MLX5_CQE_SIZE"});
  if (qp.bf.reg == nullptr || reinterpret_cast<u64>(qp.bf.reg) % sizeof(u64) != 0)
    throw Error("the doorbell register that libmlx5 has mapped",
                fmt::format("{} is no address of one", qp.bf.reg));

  QueuePairMemory m;
  m.sq = static_cast<Word16*>(qp.sq.buf);
  m.rq = static_cast<Word16*>(qp.rq.buf);
  m.cq = static_cast<Word16*>(send_cq.buf);
  m.recv_cq = static_cast<const Word16*>(recv_cq.buf);
  m.qp_record = reinterpret_cast<u32*>(qp.dbrec);
  m.cq_record = reinterpret_cast<u32*>(send_cq.dbrec);
  m.recv_cq_record = reinterpret_cast<u32*>(recv_cq.dbrec);
  // Several queue pairs may share a register: each 8-byte store is a message of its own. The register's
  // second half, to which libmlx5 alternates, matters only if whole WQEs are written into it.
  m.sq_doorbell = static_cast<u64*>(qp.bf.reg);
  m.sq_units = qp.sq.wqe_cnt;
  m.sq_requests = shape.sq_requests;
  m.rq_entries = qp.rq.wqe_cnt;
  m.cq_entries = send_cq.cqe_cnt;
  m.recv_cq_entries = recv_cq.cqe_cnt;
  m.track_entries = power_of_two_from(m.sq_units + 1);
  m.qpn = qpn;
  m.cqn = send_cq.cqn;
  m.recv_cqn = recv_cq.cqn;
  m.max_inline = inlined;
  return m;
}

Mlx5QueuePairObject::Mlx5QueuePairObject(std::shared_ptr<const Mlx5Shared> shared,
                                         const QueuePairShape& shape)
    : shared_(std::move(shared)), shape_(shape) {
  shape_.rq_requests = std::max(shape_.rq_requests, 1u);
  made_ = make();
}

Mlx5QueuePairObject::Made Mlx5QueuePairObject::make() const {
  const VerbsContext& context = *shared_->context;
  Made made;
  made.verbs = std::make_unique<VerbsQueuePairObject>(shared_->context, shape_,
                                                      [this](const VerbsContext& c, ibv_qp_init_attr& init) {
                                                        return create_without_scatter(shared_->mlx5, c, init);
                                                      });
  const Mlx5Queues queues = describe(shared_->mlx5, *made.verbs, context.facts.name);
  made.memory = mlx5_memory(queues, shape_, made.verbs->qp()->qp_num);
  made.memory.mtu = context.active_mtu();
  return made;
}

/// A new queue pair has entries in their initial state and indices of 0 on both sides. A reset of the old one
/// would leave its completion queues as the initiator left them, and libmlx5 does not know that state.
void Mlx5QueuePairObject::reset() {
  Made fresh = make();
  made_.mapping.reset();
  made_ = std::move(fresh);
}

void Mlx5QueuePairObject::map_for_gpu() {
  auto mapping = std::make_unique<GpuMapping>(shared_->mappings);
  const QueuePairMemory& m = made_.memory;
  QueuePairMemory g = m;
  const u64 sq_bytes = u64{m.sq_units} * kSendStride;
  const u64 rq_bytes = u64{m.rq_entries} * kReceiveStride;
  try {
    // The two rings are one allocation and can share a page, so the GPU gets them as one range.
    u8* const rings = reinterpret_cast<u8*>(std::min(m.sq, m.rq));
    u8* const end = std::max(reinterpret_cast<u8*>(m.sq) + sq_bytes, reinterpret_cast<u8*>(m.rq) + rq_bytes);
    if (static_cast<u64>(end - rings) == sq_bytes + rq_bytes) (void)mapping->add(rings, sq_bytes + rq_bytes);
    g.sq = mapping->add(m.sq, sq_bytes);
    g.rq = mapping->add(m.rq, rq_bytes);
    g.cq = mapping->add(m.cq, u64{m.cq_entries} * kCqeBytes);
    g.recv_cq = mapping->add(m.recv_cq, u64{m.recv_cq_entries} * kCqeBytes);
    g.qp_record = mapping->add(m.qp_record, kQpRecordBytes);
    g.cq_record = mapping->add(m.cq_record, kCqRecordBytes);
    g.recv_cq_record = mapping->add(m.recv_cq_record, kCqRecordBytes);
    // A software NIC's register is memory.
    g.sq_doorbell = mapping->add(m.sq_doorbell, sizeof(u64), !shared_->context->verbs.drop_in);
  } catch (const Error& e) {
    throw Error(fmt::format("a GPU's access to the queues of {}", shared_->context->facts.name), e.what(),
                e.hint(), e.code());
  }
  made_.gpu_memory = g;
  made_.mapping = std::move(mapping);
}

QueuePairMemory Mlx5QueuePairObject::memory(Initiator initiator) {
  const bool on_gpu = initiator == Initiator::gpu;
  if (on_gpu && shared_->mappings == nullptr)
    throw Error(fmt::format("the queues of {}", shared_->context->facts.name), "a GPU cannot reach them",
                "open the device with a GPU");
  if (on_gpu && made_.mapping == nullptr) map_for_gpu();
  QueuePairMemory m = on_gpu ? made_.gpu_memory : made_.memory;
  const Place place = on_gpu ? Place::gpu : Place::pageable;
  const u64 bytes = u64{m.track_entries} * sizeof(Word16);
  if (track_.bytes() < bytes || track_.place() != place)
    track_ = Region(place, bytes, on_gpu ? shared_->mappings->shared_gpu() : nullptr);
  m.track = reinterpret_cast<Word16*>(on_gpu ? track_.device() : track_.host());
  return m;
}

}  // namespace doorbell::rdma
