// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// ibv_post_send, ibv_post_recv.
#include <cstring>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

std::span<const roce::Sge> pieces(const ibv_sge* list, int count) {
  return {reinterpret_cast<const roce::Sge*>(list), static_cast<std::size_t>(count)};
}

int post_send(ibv_qp* base, ibv_send_wr* first, ibv_send_wr** bad) {
  Qp& qp = of<Qp>(base);
  int error = 0;
  ibv_send_wr* wr = first;
  for (; wr != nullptr; wr = wr->next) {
    roce::SendRequest request;
    error = wr->num_sge < 0 ? EINVAL : to_request(qp, *wr, request);
    const int count = wr->opcode == IBV_WR_ATOMIC_WRITE ? 0 : wr->num_sge;
    if (error == 0) error = qp.queue->post(request, pieces(wr->sg_list, count));
    if (error != 0) {
      *bad = wr;
      break;
    }
  }
  if (wr != first) qp.attendant->on_post();
  return error;
}

int post_receive(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Qp& qp = of<Qp>(base);
  for (; wr != nullptr; wr = wr->next) {
    const int error =
        wr->num_sge < 0 ? EINVAL : qp.queue->post_receive(wr->wr_id, pieces(wr->sg_list, wr->num_sge));
    if (error == 0) continue;
    *bad = wr;
    return error;
  }
  return 0;
}

}  // namespace

int to_request(Qp& qp, const ibv_send_wr& wr, roce::SendRequest& into) {
  into.id = wr.wr_id;
  into.opcode = static_cast<roce::WrOpcode>(wr.opcode);
  if ((wr.send_flags & ~u32{IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE}) != 0)
    return EINVAL;
  into.flags = static_cast<u8>(wr.send_flags);
  into.immediate_or_key = wr.imm_data;
  if (qp.service == roce::Service::xrc) into.shared_receives = wr.qp_type.xrc.remote_srqn;
  switch (wr.opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
      into.remote_address = wr.wr.rdma.remote_addr;
      into.remote_key = wr.wr.rdma.rkey;
      break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      into.remote_address = wr.wr.atomic.remote_addr;
      into.remote_key = wr.wr.atomic.rkey;
      into.compare_or_add = wr.wr.atomic.compare_add;
      into.swap = wr.wr.atomic.swap;
      break;
    case IBV_WR_ATOMIC_WRITE:
      // The bytes are taken at once, as those of inline data.
      if (wr.num_sge != 1 || wr.sg_list[0].length != sizeof into.swap) return EINVAL;
      std::memcpy(&into.swap, reinterpret_cast<const void*>(wr.sg_list[0].addr), sizeof into.swap);
      into.flags &= static_cast<u8>(~roce::kInline);
      into.remote_address = wr.wr.rdma.remote_addr;
      into.remote_key = wr.wr.rdma.rkey;
      break;
    case IBV_WR_BIND_MW:
      return to_bind(wr.bind_mw.mw, wr.bind_mw.rkey, wr.bind_mw.bind_info, into);
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_LOCAL_INV:
      break;
    default:
      return EINVAL;
  }
  if (qp.service != roce::Service::ud) return 0;
  return to_address(qp, wr.wr.ud.ah, wr.wr.ud.remote_qpn, wr.wr.ud.remote_qkey, into);
}

int to_bind(const ibv_mw* window, u32 new_key, const ibv_mw_bind_info& info, roce::SendRequest& into) {
  if (window == nullptr || (info.length != 0 && info.mr == nullptr)) return EINVAL;
  if (info.mr != nullptr && of<Pd>(info.mr->pd).number != of<Pd>(window->pd).number) return EPERM;
  // A window gives rights to others; that this process may write is the region's to say.
  into.opcode = roce::WrOpcode::bind_window;
  into.window = window->rkey;
  into.bind = {.region_key = info.mr != nullptr ? info.mr->lkey : 0,
               .new_key = new_key,
               .address = info.addr,
               .length = info.length,
               .access = info.mw_access_flags & ~u32{IBV_ACCESS_LOCAL_WRITE}};
  return 0;
}

int to_address(const Qp& qp, ibv_ah* handle, u32 queue_pair, u32 queue_key, roce::SendRequest& into) {
  if (handle == nullptr) return EINVAL;
  into.to = of<Ah>(handle).to;
  into.to_queue_pair = queue_pair;
  // A key with the top bit set stands for the queue pair's own.
  into.queue_key = (queue_key & 0x8000'0000) != 0 ? qp.attributes.qkey : queue_key;
  return 0;
}

void set_posting_operations(Context& context) {
  context.base()->ops.post_send = post_send;
  context.base()->ops.post_recv = post_receive;
}

}  // namespace doorbell::dropin
