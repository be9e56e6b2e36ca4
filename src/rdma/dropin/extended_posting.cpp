// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests that are made call by call (ibv_wr_start to ibv_wr_complete). Nothing reaches the NIC before
// wr_complete, so wr_abort has nothing to take back.
#include <cstring>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

Qp& of_queue(ibv_qp_ex* base) {
  return of<Qp>(base);
}

void start(ibv_qp_ex* base) {
  Qp& qp = of_queue(base);
  qp.posting.lock();
  qp.builder.items.clear();
  qp.builder.sges.clear();
  qp.builder.bytes.clear();
  qp.builder.error = 0;
}

void refuse(Qp& qp, int error) {
  if (qp.builder.error == 0) qp.builder.error = error;
}

/// A new request with the identity and flags that the program wrote into the queue pair.
roce::SendRequest& add(ibv_qp_ex* base, roce::WrOpcode opcode) {
  Builder& builder = of_queue(base).builder;
  Builder::Item item;
  item.request.id = base->wr_id;
  item.request.opcode = opcode;
  item.request.flags =
      static_cast<u8>(base->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED));
  item.first_sge = static_cast<u32>(builder.sges.size());
  builder.items.push_back(item);
  return builder.items.back().request;
}

roce::SendRequest& add_remote(ibv_qp_ex* base, roce::WrOpcode opcode, u32 key, u64 address) {
  roce::SendRequest& request = add(base, opcode);
  request.remote_key = key;
  request.remote_address = address;
  return request;
}

/// The request that a call of wr_set_... is for; nullptr, which wr_complete refuses, when there is none.
Builder::Item* last(Qp& qp) {
  if (!qp.builder.items.empty()) return &qp.builder.items.back();
  refuse(qp, EINVAL);
  return nullptr;
}

void set_pieces(ibv_qp_ex* base, std::size_t count, const ibv_sge* list) {
  Qp& qp = of_queue(base);
  Builder::Item* item = last(qp);
  if (item == nullptr) return;
  for (std::size_t i = 0; i < count; ++i)
    qp.builder.sges.push_back({list[i].addr, list[i].length, list[i].lkey});
  item->sges += static_cast<u32>(count);
}

void set_inline(ibv_qp_ex* base, std::size_t count, const ibv_data_buf* list) {
  Qp& qp = of_queue(base);
  Builder::Item* item = last(qp);
  if (item == nullptr) return;
  const std::size_t first = qp.builder.bytes.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* from = static_cast<const u8*>(list[i].addr);
    qp.builder.bytes.insert(qp.builder.bytes.end(), from, from + list[i].length);
  }
  const std::size_t length = qp.builder.bytes.size() - first;
  if (length > qp.made.cap.max_inline_data) refuse(qp, EINVAL);
  item->request.flags |= roce::kInline;
  qp.builder.sges.push_back({first, static_cast<u32>(length), 0});
  item->sges += 1;
}

/// Requests that the NIC would refuse in the middle.
int check(const Qp& qp) {
  if (qp.builder.items.size() > qp.queue->room()) return ENOMEM;
  for (const Builder::Item& item : qp.builder.items)
    if ((item.request.flags & roce::kInline) == 0 && item.sges > qp.made.cap.max_send_sge) return EINVAL;
  return 0;
}

int complete(ibv_qp_ex* base) {
  Qp& qp = of_queue(base);
  Builder& builder = qp.builder;
  int error = builder.error;
  // All or none: the program would not know which of them were posted.
  if (error == 0) error = check(qp);
  if (error == 0) {
    for (Builder::Item& item : builder.items) {
      const std::span<roce::Sge> sges{builder.sges.data() + item.first_sge, item.sges};
      if ((item.request.flags & roce::kInline) != 0)
        for (roce::Sge& sge : sges) sge.address += reinterpret_cast<u64>(builder.bytes.data());
      error = qp.queue->post(item.request, sges);
      if (error != 0) break;
    }
    qp.attendant->on_post();
  }
  qp.posting.unlock();
  return error;
}

void abort_all(ibv_qp_ex* base) {
  of_queue(base).posting.unlock();
}

}  // namespace

void set_extended_posting(Qp& qp) {
  ibv_qp_ex& base = qp.base;
  using Op = roce::WrOpcode;
  base.wr_start = start;
  base.wr_complete = complete;
  base.wr_abort = abort_all;
  base.wr_send = [](ibv_qp_ex* one) { (void)add(one, Op::send); };
  base.wr_send_imm = [](ibv_qp_ex* one, __be32 immediate) {
    add(one, Op::send_immediate).immediate_or_key = immediate;
  };
  base.wr_set_sge = [](ibv_qp_ex* one, uint32_t key, uint64_t address, uint32_t length) {
    const ibv_sge piece{address, length, key};
    set_pieces(one, 1, &piece);
  };
  base.wr_set_sge_list = set_pieces;
  base.wr_set_inline_data = [](ibv_qp_ex* one, void* address, std::size_t length) {
    const ibv_data_buf piece{address, length};
    set_inline(one, 1, &piece);
  };
  base.wr_set_inline_data_list = set_inline;
  if (qp.service == roce::Service::ud) {
    base.wr_set_ud_addr = [](ibv_qp_ex* one, ibv_ah* handle, uint32_t queue_pair, uint32_t key) {
      Qp& its = of_queue(one);
      Builder::Item* item = last(its);
      if (item == nullptr) return;
      if (const int error = to_address(its, handle, queue_pair, key, item->request)) refuse(its, error);
    };
    return;
  }
  base.wr_rdma_write = [](ibv_qp_ex* one, uint32_t key, uint64_t address) {
    (void)add_remote(one, Op::write, key, address);
  };
  base.wr_rdma_write_imm = [](ibv_qp_ex* one, uint32_t key, uint64_t address, __be32 immediate) {
    add_remote(one, Op::write_immediate, key, address).immediate_or_key = immediate;
  };
  base.wr_local_inv = [](ibv_qp_ex* one, uint32_t key) {
    add(one, Op::local_invalidate).immediate_or_key = key;
  };
  base.wr_bind_mw = [](ibv_qp_ex* one, ibv_mw* window, uint32_t key, const ibv_mw_bind_info* info) {
    roce::SendRequest& request = add(one, Op::bind_window);
    if (const int error = to_bind(window, key, *info, request)) refuse(of_queue(one), error);
  };
  if (qp.service == roce::Service::xrc) {
    base.wr_set_xrc_srqn = [](ibv_qp_ex* one, uint32_t number) {
      if (Builder::Item* item = last(of_queue(one))) item->request.shared_receives = number;
    };
  }
  if (qp.service == roce::Service::uc) return;
  base.wr_send_inv = [](ibv_qp_ex* one, uint32_t key) {
    add(one, Op::send_invalidate).immediate_or_key = key;
  };
  base.wr_rdma_read = [](ibv_qp_ex* one, uint32_t key, uint64_t address) {
    (void)add_remote(one, Op::read, key, address);
  };
  base.wr_atomic_write = [](ibv_qp_ex* one, uint32_t key, uint64_t address, const void* bytes) {
    std::memcpy(&add_remote(one, Op::atomic_write, key, address).swap, bytes, sizeof(u64));
  };
  base.wr_atomic_cmp_swp = [](ibv_qp_ex* one, uint32_t key, uint64_t address, uint64_t compare,
                              uint64_t swap) {
    roce::SendRequest& request = add_remote(one, Op::compare_swap, key, address);
    request.compare_or_add = compare;
    request.swap = swap;
  };
  base.wr_atomic_fetch_add = [](ibv_qp_ex* one, uint32_t key, uint64_t address, uint64_t addend) {
    add_remote(one, Op::fetch_add, key, address).compare_or_add = addend;
  };
}

}  // namespace doorbell::dropin
