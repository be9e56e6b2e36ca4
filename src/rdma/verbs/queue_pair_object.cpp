// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <random>

#include "rdma/verbs/context.hpp"

namespace doorbell::rdma {

namespace {

constexpr const char* kStates[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

void check_range(const char* what, u32 value, u32 max) {
  if (value > max) throw Error(what, fmt::format("{} is not in 0..{}", value, max));
}

ibv_mtu mtu_code(u32 bytes) {
  if (bytes < 256 || bytes > 4096 || !std::has_single_bit(bytes))
    throw Error("path MTU", fmt::format("{} is not one of 256, 512, 1024, 2048, 4096", bytes));
  return static_cast<ibv_mtu>(std::countr_zero(bytes) - 7);
}

/// The most reads and atomics under way: some devices can do fewer than are asked for.
u8 at_most(u32 wanted, int device) {
  return static_cast<u8>(std::min(wanted, static_cast<u32>(std::clamp(device, 0, 255))));
}

void drain(ibv_cq* cq, u32 entries) {
  ibv_wc wc;
  for (u32 i = 0; i < entries && ibv_poll_cq(cq, 1, &wc) > 0; ++i) {
  }
}

}  // namespace

VerbsQueuePairObject::VerbsQueuePairObject(std::shared_ptr<const VerbsContext> context,
                                           const QueuePairShape& shape)
    : VerbsQueuePairObject(std::move(context), shape, [](const VerbsContext& c, ibv_qp_init_attr& init) {
        return c.verbs.create_qp(c.pd, &init);
      }) {
  buffers_ = std::make_unique<VerbsBuffers>();
}

VerbsQueuePairObject::VerbsQueuePairObject(std::shared_ptr<const VerbsContext> context,
                                           const QueuePairShape& shape, const Create& create)
    : context_(std::move(context)), shape_(shape) {
  const VerbsLibrary& verbs = context_->verbs;
  const auto cqe = [](u32 requests) { return static_cast<int>(std::max(requests, 1u)); };
  send_cq_ = verbs.create_cq(context_->context, cqe(shape.sq_requests), nullptr, nullptr, 0);
  if (send_cq_ != nullptr)
    recv_cq_ = verbs.create_cq(context_->context, cqe(shape.rq_requests), nullptr, nullptr, 0);
  if (recv_cq_ != nullptr) {
    ibv_qp_init_attr init = {};
    init.send_cq = send_cq_;
    init.recv_cq = recv_cq_;
    init.cap = {shape.sq_requests, shape.rq_requests, 1, 1, shape.max_inline};
    init.qp_type = IBV_QPT_RC;
    init.sq_sig_all = shape.signal_all ? 1 : 0;
    qp_ = create(*context_, init);
    max_inline_ = init.cap.max_inline_data;
  }
  if (qp_ == nullptr) {
    const int error = errno;
    release();
    verbs_failed(
        fmt::format("a queue pair of {} requests, {} receives and {} inlined bytes on {}", shape.sq_requests,
                    shape.rq_requests, shape.max_inline, context_->facts.name),
        error,
        error == ENOMEM ? "raise the locked-memory limit: ulimit -l unlimited" : "ask for smaller queues");
  }
  // Packets of an earlier connection of the same QPN may still be under way.
  psn_ = std::random_device()() & 0xffffff;
}

VerbsQueuePairObject::~VerbsQueuePairObject() {
  release();
}

void VerbsQueuePairObject::release() noexcept {
  if (qp_ != nullptr) context_->verbs.destroy_qp(qp_);
  if (send_cq_ != nullptr) context_->verbs.destroy_cq(send_cq_);
  if (recv_cq_ != nullptr) context_->verbs.destroy_cq(recv_cq_);
}

QueuePairAddress VerbsQueuePairObject::address() const {
  QueuePairAddress e{
      .qpn = qp_->qp_num, .psn = psn_, .lid = context_->port_attributes.lid, .mtu = context_->active_mtu()};
  std::copy_n(context_->gid.gid.raw, e.gid.size(), e.gid.begin());
  return e;
}

void VerbsQueuePairObject::modify(ibv_qp_attr attributes, int mask, const char* what) {
  const int rc = context_->verbs.modify_qp(qp_, &attributes, mask);
  if (rc == 0) return;
  verbs_failed(fmt::format("queue pair {} of {} to {}", qp_->qp_num, context_->facts.name, what),
               rc > 0 ? rc : errno, fmt::format("it is in state {} now", kStates[static_cast<u32>(state())]));
}

void VerbsQueuePairObject::initialise(const ConnectionOptions& options) {
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = static_cast<u8>(context_->port);
  a.qp_access_flags = options.access & access::all;
  modify(a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT");
}

void VerbsQueuePairObject::connect(const QueuePairAddress& peer, const ConnectionOptions& options) {
  check_range("acknowledgement time-out", options.timeout, 31);
  check_range("retry count", options.retry_count, 7);
  check_range("RNR retry count", options.rnr_retry, 7);
  check_range("RNR timer", options.min_rnr_timer, 31);
  const u32 mtu = options.mtu != 0 ? options.mtu : std::min(peer.mtu, context_->active_mtu());
  if (mtu > context_->active_mtu())
    throw Error("path MTU", fmt::format("{} is above the port's {}", mtu, context_->active_mtu()));

  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = mtu_code(mtu);
  a.dest_qp_num = peer.qpn;
  a.rq_psn = peer.psn;
  a.max_dest_rd_atomic = at_most(options.max_rd_atomic, context_->attributes.max_qp_rd_atom);
  a.min_rnr_timer = static_cast<u8>(options.min_rnr_timer);
  a.ah_attr.port_num = static_cast<u8>(context_->port);
  a.ah_attr.dlid = static_cast<u16>(peer.lid);
  if (context_->ethernet() || peer.lid == 0) {
    a.ah_attr.is_global = 1;
    std::copy(peer.gid.begin(), peer.gid.end(), a.ah_attr.grh.dgid.raw);
    a.ah_attr.grh.sgid_index = static_cast<u8>(context_->gid.gid_index);
    a.ah_attr.grh.hop_limit = 64;
  }
  modify(a,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "RTR");

  a = {};
  a.qp_state = IBV_QPS_RTS;
  a.timeout = static_cast<u8>(options.timeout);
  a.retry_cnt = static_cast<u8>(options.retry_count);
  a.rnr_retry = static_cast<u8>(options.rnr_retry);
  a.sq_psn = psn_;
  a.max_rd_atomic = at_most(options.max_rd_atomic, context_->attributes.max_qp_init_rd_atom);
  modify(a,
         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "RTS");
}

void VerbsQueuePairObject::reset() {
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_RESET;
  modify(a, IBV_QP_STATE, "RESET");
  drain(send_cq_, static_cast<u32>(send_cq_->cqe));
  drain(recv_cq_, static_cast<u32>(recv_cq_->cqe));
}

void VerbsQueuePairObject::fail() {
  ibv_qp_attr a = {};
  a.qp_state = IBV_QPS_ERR;
  modify(a, IBV_QP_STATE, "ERR");
}

QpState VerbsQueuePairObject::state() const {
  ibv_qp_attr a = {};
  ibv_qp_init_attr init = {};
  if (const int rc = context_->verbs.query_qp(qp_, &a, IBV_QP_STATE, &init); rc != 0)
    verbs_failed(fmt::format("the state of queue pair {}", qp_->qp_num), rc > 0 ? rc : errno);
  return static_cast<QpState>(std::min<u32>(a.qp_state, IBV_QPS_ERR));
}

QueuePairMemory VerbsQueuePairObject::memory(Initiator) {
  throw Error(fmt::format("the queues of {}", context_->facts.name),
              "libibverbs does not give their addresses",
              "drive them by libibverbs from a CPU, or use the NIC's own provider");
}

VerbsQueuePair::State VerbsQueuePairObject::queue_state() const {
  VerbsQueuePair::State s;
  s.qp = qp_;
  s.send_cq = send_cq_;
  s.recv_cq = recv_cq_;
  s.buffers = buffers_.get();
  s.sq_requests = shape_.sq_requests;
  s.rq_requests = shape_.rq_requests;
  return s;
}

}  // namespace doorbell::rdma
