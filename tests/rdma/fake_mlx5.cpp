// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libmlx5.so.1 on top of fake_verbs.cpp; both are linked into one library. Its queues are ordinary memory
// with libmlx5's layout. Doorbell records of several queues share a page, and all queue pairs share one
// doorbell register. No device reads any of it.
//
// Environment variables, which are read at every call, control it:
//   FAKE_MLX5_SET=KEY=VALUE  sets sq_stride, sq_cnt, rq_stride, rq_cnt, cqe_size, cqe_cnt or reg
//   FAKE_MLX5_FAIL=ERRNO     mlx5dv_init_obj fails
#include <infiniband/mlx5dv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" void (*fake_verbs_before_destroy)(void*);

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRecordBytes = 64;

/// Memory of a queue pair or a completion queue. Unmapped with it: who still uses it then is found.
struct Part {
  void* owner = nullptr;
  char* buffer = nullptr;
  std::size_t bytes = 0;
  std::size_t record = 0;
  mlx5dv_qp qp = {};
  mlx5dv_cq cq = {};
};

char* map(std::size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : static_cast<char*>(p);
}

struct State {
  std::vector<Part> parts;
  std::vector<bool> records = std::vector<bool>(kPage / kRecordBytes);
  char* record_page = map(kPage);
  char* register_page = map(kPage);
  std::uint32_t next_number = 0x123;
  std::uint32_t create_flags = 0;
};
State& state() {
  static State s;
  return s;
}

std::uint32_t setting(std::string_view key, std::uint32_t otherwise) {
  const char* set = std::getenv("FAKE_MLX5_SET");
  const std::string text = set != nullptr ? set : "";
  const auto equals = text.find('=');
  return equals == std::string::npos || text.substr(0, equals) != key
             ? otherwise
             : static_cast<std::uint32_t>(std::strtoul(text.c_str() + equals + 1, nullptr, 0));
}

std::uint32_t round_up(std::uint32_t n) {
  std::uint32_t power = 1;
  while (power < n) power *= 2;
  return power;
}

void forget(void* owner) {
  std::vector<Part>& parts = state().parts;
  for (auto p = parts.begin(); p != parts.end(); ++p) {
    if (p->owner != owner) continue;
    munmap(p->buffer, p->bytes);
    state().records[p->record] = false;
    parts.erase(p);
    return;
  }
}

Part& add(void* owner, std::size_t bytes) {
  fake_verbs_before_destroy = forget;
  State& s = state();
  Part part;
  part.owner = owner;
  part.bytes = (bytes + kPage - 1) / kPage * kPage;
  part.buffer = map(part.bytes);
  while (s.records.at(part.record)) ++part.record;
  s.records[part.record] = true;
  std::memset(s.record_page + part.record * kRecordBytes, 0, kRecordBytes);
  s.parts.push_back(part);
  return s.parts.back();
}
__be32* record_of(const Part& part) {
  return reinterpret_cast<__be32*>(state().record_page + part.record * kRecordBytes);
}

Part* find(void* owner) {
  for (Part& part : state().parts)
    if (part.owner == owner) return &part;
  return nullptr;
}

void lay_out(ibv_qp* qp, const ibv_qp_cap& cap) {
  const std::uint32_t receive = 16 * round_up(cap.max_recv_sge);
  const std::uint32_t receives = std::max(round_up(cap.max_recv_wr) * receive, 64u) / receive;
  // libmlx5 counts with the largest fixed segments that there are.
  const std::uint32_t send = (192 + (cap.max_inline_data != 0 ? cap.max_inline_data + 4 : 16) + 63) / 64;
  const std::uint32_t blocks = round_up(cap.max_send_wr * send);
  Part& part = add(qp, receives * receive + blocks * 64u);
  mlx5dv_qp& out = part.qp;
  out.dbrec = record_of(part);
  out.rq = {part.buffer, setting("rq_cnt", receives), setting("rq_stride", receive)};
  out.sq = {part.buffer + receives * receive, setting("sq_cnt", blocks), setting("sq_stride", 64)};
  out.bf = {setting("reg", 1) != 0 ? state().register_page + 0x800 : nullptr, 0};
}

Part& lay_out(ibv_cq* cq) {
  const std::uint32_t entries = round_up(static_cast<std::uint32_t>(cq->cqe) + 1);
  Part& part = add(cq, entries * sizeof(mlx5_cqe64));
  auto* entry = reinterpret_cast<mlx5_cqe64*>(part.buffer);
  for (std::uint32_t i = 0; i < entries; ++i) entry[i].op_own = MLX5_CQE_INVALID << 4;
  part.cq.buf = part.buffer;
  part.cq.dbrec = record_of(part);
  part.cq.cqe_cnt = setting("cqe_cnt", entries);
  part.cq.cqe_size = setting("cqe_size", sizeof(mlx5_cqe64));
  part.cq.cqn = state().next_number++;
  return part;
}

}  // namespace

extern "C" {

/// The flags that queue pairs were created with; the register that all queue pairs share.
std::uint32_t fake_mlx5_create_flags() {
  return state().create_flags;
}
void* fake_mlx5_register() {
  return state().register_page + 0x800;
}

bool mlx5dv_is_supported(ibv_device* device) {
  return std::string_view(device->name).starts_with("mlx5");
}

ibv_qp* mlx5dv_create_qp(ibv_context*, ibv_qp_init_attr_ex* attr, mlx5dv_qp_init_attr* own) {
  if (attr->comp_mask != IBV_QP_INIT_ATTR_PD || attr->pd == nullptr || attr->qp_type != IBV_QPT_RC) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp_init_attr plain = {};
  plain.send_cq = attr->send_cq;
  plain.recv_cq = attr->recv_cq;
  plain.cap = attr->cap;
  plain.qp_type = attr->qp_type;
  plain.sq_sig_all = attr->sq_sig_all;
  ibv_qp* qp = ibv_create_qp(attr->pd, &plain);
  if (qp == nullptr) return nullptr;
  qp->qp_num = state().next_number++;
  state().create_flags =
      (own->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) != 0 ? own->create_flags : 0;
  lay_out(qp, attr->cap);
  attr->cap = plain.cap;
  return qp;
}

int mlx5dv_init_obj(mlx5dv_obj* object, uint64_t kinds) {
  const char* fail = std::getenv("FAKE_MLX5_FAIL");
  if (fail != nullptr) return std::atoi(fail);
  if ((kinds & MLX5DV_OBJ_QP) != 0) {
    const Part* part = find(object->qp.in);
    if (part == nullptr || object->qp.out->comp_mask != 0) return EINVAL;
    *object->qp.out = part->qp;
  }
  if ((kinds & MLX5DV_OBJ_CQ) != 0) {
    Part* part = find(object->cq.in);
    *object->cq.out = (part != nullptr ? *part : lay_out(object->cq.in)).cq;
  }
  return 0;
}

}  // extern "C"
