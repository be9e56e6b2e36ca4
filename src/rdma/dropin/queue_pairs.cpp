// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Queue pairs: making, changing, asking, ending.
#include <pthread.h>

#include <cstring>

#include "rdma/dropin/devices.hpp"
#include "rdma/dropin/hand_out.h"
#include "rdma/dropin/report.hpp"

namespace doorbell::dropin {

namespace {

constexpr u64 kRcOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                              IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
                              IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                              IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW |
                              IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_ATOMIC_WRITE;
constexpr u64 kUcOperations = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                              IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_LOCAL_INV |
                              IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr u64 kUdOperations = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

struct Kind {
  roce::Service service;
  u64 operations;
};

bool kind_of(ibv_qp_type type, Kind& into) {
  switch (type) {
    case IBV_QPT_RC:
      into = {roce::Service::rc, kRcOperations};
      return true;
    case IBV_QPT_UC:
      into = {roce::Service::uc, kUcOperations};
      return true;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      into = {roce::Service::xrc, kRcOperations};
      return true;
    case IBV_QPT_UD:
      into = {roce::Service::ud, kUdOperations};
      return true;
    default:
      return false;
  }
}

/// EINVAL for sizes that the NIC does not have.
int check_sizes(const ibv_qp_cap& sizes, const roce::Limits& limits) {
  return sizes.max_send_wr > limits.requests || sizes.max_recv_wr > limits.requests ||
                 sizes.max_send_sge > limits.sges || sizes.max_recv_sge > limits.sges ||
                 sizes.max_inline_data > limits.inline_bytes
             ? EINVAL
             : 0;
}

/// Parts of a queue pair's description that its type does not have become nothing. EINVAL where one is
/// missing.
int check_parts(ibv_qp_init_attr& a, const ibv_pd* pd, const ibv_xrcd* xrc_domain) {
  ibv_qp_cap& sizes = a.cap;
  if (a.qp_type == IBV_QPT_XRC_RECV) {
    a.send_cq = a.recv_cq = nullptr;
    a.srq = nullptr;
    sizes = {};
    return pd != nullptr || xrc_domain == nullptr ? EINVAL : 0;
  }
  if (a.qp_type == IBV_QPT_XRC_SEND) {
    a.recv_cq = nullptr;
    a.srq = nullptr;
    sizes.max_recv_wr = sizes.max_recv_sge = 0;
  } else if (a.recv_cq == nullptr) {
    return EINVAL;
  }
  if (a.srq != nullptr) {
    if (of<Srq>(a.srq).xrc_domain != nullptr) return EINVAL;
    sizes.max_recv_wr = sizes.max_recv_sge = 0;
  }
  return pd == nullptr || xrc_domain != nullptr || a.send_cq == nullptr ? EINVAL : 0;
}

roce::CompletionQueue* queue_of(ibv_cq* cq) {
  return cq != nullptr ? of<Cq>(cq).queue.get() : nullptr;
}

ibv_qp* make_queue_pair(ibv_context* base, ibv_pd* pd, ibv_xrcd* xrc_domain, ibv_qp_init_attr& attributes,
                        u64 operations, bool extended, bool management = false) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  Kind kind{};
  if (!kind_of(attributes.qp_type, kind)) return refused(EOPNOTSUPP);
  ibv_qp_init_attr made = attributes;
  if (const int error = check_parts(made, pd, xrc_domain)) return refused(error);
  if ((operations & ~kind.operations) != 0) return refused(EOPNOTSUPP);
  const ibv_qp_cap& sizes = made.cap;
  if (const int error = check_sizes(sizes, context.nic->limits())) return refused(error);
  auto qp = std::make_unique<Qp>();
  qp->attendant = &context.adapter->attendant();
  qp->service = kind.service;
  qp->domain = pd != nullptr ? &of<Pd>(pd) : nullptr;
  qp->xrc_domain = xrc_domain != nullptr ? &of<Xrcd>(xrc_domain) : nullptr;
  qp->extended = extended;
  const roce::QueuePairOptions options{
      .service = kind.service,
      .half = made.qp_type == IBV_QPT_XRC_SEND   ? roce::Half::requester
              : made.qp_type == IBV_QPT_XRC_RECV ? roce::Half::responder
                                                 : roce::Half::both,
      .xrc_domain = qp->xrc_domain != nullptr ? qp->xrc_domain->domain->number : 0,
      .protection_domain = qp->domain != nullptr ? qp->domain->number : 0,
      .send_completions = queue_of(made.send_cq),
      .receive_completions = queue_of(made.recv_cq),
      .shared_receives = made.srq != nullptr ? of<Srq>(made.srq).queue.get() : nullptr,
      .send_requests = sizes.max_send_wr,
      .receive_requests = sizes.max_recv_wr,
      .send_sges = sizes.max_send_sge,
      .receive_sges = sizes.max_recv_sge,
      .inline_bytes = sizes.max_inline_data,
      .signal_all = made.sq_sig_all != 0,
      .management = management};
  std::unique_ptr<roce::QueuePair> queue;
  if (const int error = context.nic->make_queue_pair(options, queue)) return refused(error);
  qp->queue = std::move(queue);
  attributes.cap = sizes;
  qp->made = made;
  qp->attributes.cap = sizes;
  qp->attributes.port_num = 1;
  ibv_qp& plain = *qp->plain();
  plain.context = base;
  plain.qp_context = made.qp_context;
  plain.pd = pd;
  plain.send_cq = made.send_cq;
  plain.recv_cq = made.recv_cq;
  plain.srq = made.srq;
  plain.handle = context.adapter->next_handle();
  plain.qp_num = qp->queue->number();
  plain.state = IBV_QPS_RESET;
  plain.qp_type = made.qp_type;
  if (extended) set_extended_posting(*qp);
  join(context, *qp);
  const std::lock_guard lock(context.mutex);
  context.queue_pairs.insert(qp.get());
  return qp.release()->plain();
}

ibv_qp* make_extended_queue_pair(ibv_context* base, ibv_qp_init_attr_ex* attributes) {
  constexpr u32 kKnown = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
                         IBV_QP_INIT_ATTR_CREATE_FLAGS;
  const u32 mask = attributes->comp_mask;
  if ((mask & ~kKnown) != 0) return refused(EOPNOTSUPP);
  if ((mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) != 0 && attributes->create_flags != 0)
    return refused(EOPNOTSUPP);
  const bool extended = (mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) != 0;
  // The longer structure begins as the plain one.
  auto& plain = *reinterpret_cast<ibv_qp_init_attr*>(attributes);
  return make_queue_pair(base, (mask & IBV_QP_INIT_ATTR_PD) != 0 ? attributes->pd : nullptr,
                         (mask & IBV_QP_INIT_ATTR_XRCD) != 0 ? attributes->xrcd : nullptr, plain,
                         extended ? attributes->send_ops_flags : 0, extended);
}

/// EINVAL for values that no queue pair can have; which attributes a transition needs is the NIC's to say.
int check_values(const ibv_qp_attr& a, int mask, u32 reads) {
  const auto given = [mask](int bit) { return (mask & bit) != 0; };
  if (given(IBV_QP_ALT_PATH) || given(IBV_QP_RATE_LIMIT)) return EOPNOTSUPP;
  const bool bad =
      (given(IBV_QP_STATE) && a.qp_state > IBV_QPS_ERR) ||
      (given(IBV_QP_CUR_STATE) && a.cur_qp_state > IBV_QPS_ERR) ||
      (given(IBV_QP_PKEY_INDEX) && a.pkey_index != 0) || (given(IBV_QP_PORT) && a.port_num != 1) ||
      (given(IBV_QP_PATH_MTU) && (a.path_mtu < IBV_MTU_256 || a.path_mtu > IBV_MTU_4096)) ||
      (given(IBV_QP_TIMEOUT) && a.timeout > 31) || (given(IBV_QP_RETRY_CNT) && a.retry_cnt > 7) ||
      (given(IBV_QP_RNR_RETRY) && a.rnr_retry > 7) || (given(IBV_QP_MIN_RNR_TIMER) && a.min_rnr_timer > 31) ||
      (given(IBV_QP_MAX_QP_RD_ATOMIC) && a.max_rd_atomic > reads) ||
      (given(IBV_QP_MAX_DEST_RD_ATOMIC) && a.max_dest_rd_atomic > reads) ||
      (given(IBV_QP_DEST_QPN) && a.dest_qp_num > roce::kMask24) ||
      (given(IBV_QP_RQ_PSN) && a.rq_psn > roce::kMask24) ||
      (given(IBV_QP_SQ_PSN) && a.sq_psn > roce::kMask24);
  return bad ? EINVAL : 0;
}

/// The program's settings, for ibv_query_qp; the NIC keeps less.
void remember_attributes(ibv_qp_attr& kept, const ibv_qp_attr& a, int mask) {
  const auto take = [mask](int bit, auto& into, const auto& from) {
    if ((mask & bit) != 0) into = from;
  };
  take(IBV_QP_PATH_MTU, kept.path_mtu, a.path_mtu);
  take(IBV_QP_PATH_MIG_STATE, kept.path_mig_state, a.path_mig_state);
  take(IBV_QP_QKEY, kept.qkey, a.qkey);
  take(IBV_QP_RQ_PSN, kept.rq_psn, a.rq_psn);
  take(IBV_QP_SQ_PSN, kept.sq_psn, a.sq_psn);
  take(IBV_QP_DEST_QPN, kept.dest_qp_num, a.dest_qp_num);
  take(IBV_QP_ACCESS_FLAGS, kept.qp_access_flags, a.qp_access_flags);
  take(IBV_QP_AV, kept.ah_attr, a.ah_attr);
  take(IBV_QP_PKEY_INDEX, kept.pkey_index, a.pkey_index);
  take(IBV_QP_EN_SQD_ASYNC_NOTIFY, kept.en_sqd_async_notify, a.en_sqd_async_notify);
  take(IBV_QP_MAX_QP_RD_ATOMIC, kept.max_rd_atomic, a.max_rd_atomic);
  take(IBV_QP_MAX_DEST_RD_ATOMIC, kept.max_dest_rd_atomic, a.max_dest_rd_atomic);
  take(IBV_QP_MIN_RNR_TIMER, kept.min_rnr_timer, a.min_rnr_timer);
  take(IBV_QP_PORT, kept.port_num, a.port_num);
  take(IBV_QP_TIMEOUT, kept.timeout, a.timeout);
  take(IBV_QP_RETRY_CNT, kept.retry_cnt, a.retry_cnt);
  take(IBV_QP_RNR_RETRY, kept.rnr_retry, a.rnr_retry);
}

/// Without the attributes of the half that an XRC queue pair is not: the kernel ignores them, and programs
/// count on that.
int mask_of(ibv_qp_type type, int mask) {
  if (type == IBV_QPT_XRC_SEND) return mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (type == IBV_QPT_XRC_RECV)
    return mask & ~(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
  return mask;
}

int modify(Qp& qp, const ibv_qp_attr& a, int mask) {
  Context& context = of(qp.plain()->context);
  if (context.dead) return EIO;
  mask = mask_of(qp.plain()->qp_type, mask);
  if (const int error = check_values(a, mask, context.nic->limits().reads)) return error;
  roce::QueuePairAttributes to{.state = static_cast<roce::State>(a.qp_state),
                               .current = static_cast<roce::State>(a.cur_qp_state),
                               .mtu = 128U << a.path_mtu,
                               .queue_key = a.qkey,
                               .receive_psn = a.rq_psn,
                               .send_psn = a.sq_psn,
                               .destination = a.dest_qp_num,
                               .access = a.qp_access_flags,
                               .peer = {},
                               .reads_as_requester = a.max_rd_atomic,
                               .reads_as_responder = a.max_dest_rd_atomic,
                               .rnr_timer = a.min_rnr_timer,
                               .timeout = a.timeout,
                               .retries = a.retry_cnt,
                               .rnr_retries = a.rnr_retry};
  if ((mask & IBV_QP_AV) != 0 && !endpoint_of(a.ah_attr, context.adapter->self().port, to.peer))
    return EINVAL;
  // These two change nothing on a NIC without path migration.
  constexpr int kOwn = IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_PATH_MIG_STATE;
  if (const int error = qp.queue->modify(to, static_cast<u32>(mask & ~kOwn))) return error;
  remember_attributes(qp.attributes, a, mask);
  if (qp.xrc_domain != nullptr) share_attributes(context, qp);
  if ((mask & IBV_QP_STATE) != 0) qp.plain()->state = a.qp_state;
  if ((mask & IBV_QP_STATE) != 0 && a.qp_state == IBV_QPS_RESET) context.adapter->rings().reset(*qp.queue);
  return 0;
}

}  // namespace

void count_users(Qp& qp, int by) {
  const auto change = [by](std::atomic<u32>& users) { users.fetch_add(static_cast<u32>(by)); };
  if (qp.domain != nullptr) change(qp.domain->users);
  if (qp.xrc_domain != nullptr) change(qp.xrc_domain->users);
  for (ibv_cq* cq : {qp.plain()->send_cq, qp.plain()->recv_cq})
    if (cq != nullptr) change(of<Cq>(cq).users);
  if (qp.plain()->srq != nullptr) change(of<Srq>(qp.plain()->srq).users);
}

void set_queue_pair_operations(Context& context) {
  context.verbs.create_qp_ex = make_extended_queue_pair;
  set_posting_operations(context);
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;
using doorbell::u32;

DOORBELL_VERBS ibv_qp* ibv_create_qp(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  return make_queue_pair(pd->context, pd, nullptr, *attributes, 0, false);
}

DOORBELL_VERBS ibv_qp* doorbell_verbs_management_queue(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  return make_queue_pair(pd->context, pd, nullptr, *attributes, 0, false, true);
}

DOORBELL_VERBS ibv_qp_ex* ibv_qp_to_qp_ex(ibv_qp* base) {
  Qp& qp = of<Qp>(base);
  return qp.extended ? &qp.base : nullptr;
}

DOORBELL_VERBS int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
  return modify(of<Qp>(base), *attributes, mask);
}

DOORBELL_VERBS int ibv_query_qp(ibv_qp* base, ibv_qp_attr* into, int, ibv_qp_init_attr* made) {
  Qp& qp = of<Qp>(base);
  if (of(base->context).dead) return EIO;
  // The state may have changed by itself, on an error.
  base->state = static_cast<ibv_qp_state>(qp.queue->state());
  *into = qp.attributes;
  into->qp_state = into->cur_qp_state = base->state;
  *made = qp.made;
  return 0;
}

DOORBELL_VERBS int ibv_destroy_qp(ibv_qp* base) {
  Qp& qp = of<Qp>(base);
  Context& context = of(base->context);
  {
    const std::lock_guard lock(context.mutex);
    context.queue_pairs.erase(&qp);
  }
  if (qp.queue != nullptr) {
    if (!context.dead) context.adapter->rings().forget(*qp.queue);
    // Packets that the peer waits for leave first: an acknowledgement that is not sent is a time-out there.
    (void)context.nic->progress_waiting();
    leave(context, qp);
  }
  end_events(context, qp);
  count_users(qp, -1);
  delete &qp;
  return 0;
}

DOORBELL_VERBS int ibv_query_qp_data_in_order(ibv_qp*, ibv_wr_opcode, u32) {
  return 0;
}

DOORBELL_VERBS int ibv_set_ece(ibv_qp*, ibv_ece*) {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

DOORBELL_VERBS int ibv_query_ece(ibv_qp*, ibv_ece* into) {
  *into = {};
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

DOORBELL_VERBS int ibv_attach_mcast(ibv_qp*, const ibv_gid*, uint16_t) {
  return EOPNOTSUPP;
}
DOORBELL_VERBS int ibv_detach_mcast(ibv_qp*, const ibv_gid*, uint16_t) {
  return EOPNOTSUPP;
}
