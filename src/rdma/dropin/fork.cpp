// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A context in a child of fork(): its NIC stayed with the parent, as a real one's would. The child opens the
// device anew.
#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

// verbs.h calls these by pointer, without asking anything before.
int dead_poll(ibv_cq*, int, ibv_wc*) {
  return -EIO;
}
int dead_notify(ibv_cq*, int) {
  return EIO;
}
int dead_send(ibv_qp*, ibv_send_wr* wr, ibv_send_wr** bad) {
  *bad = wr;
  return EIO;
}
int dead_receive(ibv_qp*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  *bad = wr;
  return EIO;
}
int dead_shared_receive(ibv_srq*, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  *bad = wr;
  return EIO;
}
ibv_mw* dead_window(ibv_pd*, ibv_mw_type) {
  return refused(EIO);
}
int dead_bind(ibv_qp*, ibv_mw*, ibv_mw_bind*) {
  return EIO;
}

}  // namespace

void set_dead_operations(Context& context) {
  ibv_context_ops& ops = context.base()->ops;
  ops.poll_cq = dead_poll;
  ops.req_notify_cq = dead_notify;
  ops.post_send = dead_send;
  ops.post_recv = dead_receive;
  ops.post_srq_recv = dead_shared_receive;
  ops.alloc_mw = dead_window;
  ops.bind_mw = dead_bind;
  // Device memory by itself needs no NIC.
  context.verbs.reg_dm_mr = nullptr;
  for (Qp* queue_pair : context.queue_pairs) {
    queue_pair->base.wr_start = [](ibv_qp_ex*) {};
    queue_pair->base.wr_complete = [](ibv_qp_ex*) { return EIO; };
    queue_pair->base.wr_abort = [](ibv_qp_ex*) {};
  }
  for (Cq* completions : context.completion_queues)
    completions->base.start_poll = [](ibv_cq_ex*, ibv_poll_cq_attr*) { return EIO; };
}

}  // namespace doorbell::dropin
