// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Queue pairs of ids: made with what the program leaves out, and brought from state to state.
#include <algorithm>
#include <cstring>

#include "rdma/dropin/cm/manager.hpp"

namespace doorbell::cm {

namespace {

constexpr u8 kAckTimeout = 18;  // 1.07 s
constexpr u8 kRnrTimer = 12;    // 0.64 ms

}  // namespace

int attributes_for(Id& id, ibv_qp_state state, ibv_qp_attr& into, int& mask) {
  const bool datagram = id.datagram();
  const bool reliable = id.base.qp_type == IBV_QPT_RC;
  into.qp_state = state;
  mask = IBV_QP_STATE;
  switch (state) {
    case IBV_QPS_INIT:
      if (id.port == nullptr) return EINVAL;
      into.pkey_index = 0;
      into.port_num = 1;
      into.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                             (reliable ? IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC : 0);
      into.qkey = RDMA_UDP_QKEY;
      mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagram ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
      return 0;
    case IBV_QPS_RTR:
      if (datagram) return 0;
      if (id.connection == nullptr || id.remote_queue_pair == 0) return EINVAL;
      std::memset(&into.ah_attr, 0, sizeof into.ah_attr);
      into.ah_attr.is_global = 1;
      into.ah_attr.port_num = 1;
      into.ah_attr.grh.dgid = gid_of(id.destination);
      into.ah_attr.grh.hop_limit = 64;
      into.path_mtu = static_cast<ibv_mtu>(id.mtu);
      into.dest_qp_num = id.remote_queue_pair;
      // StartingPSN of a message is where its receiver begins to send.
      into.rq_psn = id.psn;
      into.max_dest_rd_atomic = id.responder_resources;
      into.min_rnr_timer = kRnrTimer;
      mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
              (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0);
      return 0;
    case IBV_QPS_RTS:
      into.sq_psn = datagram ? 0 : id.remote_psn;
      mask |= IBV_QP_SQ_PSN;
      if (!reliable) return 0;
      into.timeout = id.ack_timeout != 0 ? id.ack_timeout : kAckTimeout;
      into.retry_cnt = id.retries;
      into.rnr_retry = id.rnr_retries;
      into.max_rd_atomic = id.initiator_depth;
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
      return 0;
    default:
      return EINVAL;
  }
}

namespace {

int change(Id& id, ibv_qp_state state) {
  ibv_qp_attr to{};
  int mask = 0;
  if (const int error = attributes_for(id, state, to, mask)) return error;
  return ::ibv_modify_qp(id.base.qp, &to, mask);
}

/// Completion queues for a program that brings none; errno value.
int make_queues(Id& id, ibv_qp_init_attr& made) {
  rdma_cm_id& base = id.base;
  const auto make = [&](u32 entries, ibv_comp_channel*& channel, ibv_cq*& queue) {
    channel = ::ibv_create_comp_channel(base.verbs);
    if (channel == nullptr) return errno;
    queue = ::ibv_create_cq(base.verbs, static_cast<int>(std::max(entries, 1U)), &base, channel, 0);
    return queue == nullptr ? errno : 0;
  };
  if (made.recv_cq == nullptr) {
    if (base.recv_cq == nullptr) {
      id.owns_receive_queue = true;
      if (const int error = make(made.cap.max_recv_wr, base.recv_cq_channel, base.recv_cq)) return error;
    }
    made.recv_cq = base.recv_cq;
  }
  if (made.send_cq == nullptr) {
    if (base.send_cq == nullptr) {
      id.owns_send_queue = true;
      if (const int error = make(made.cap.max_send_wr, base.send_cq_channel, base.send_cq)) return error;
    }
    made.send_cq = base.send_cq;
  }
  return 0;
}

void end_queues(Id& id) {
  rdma_cm_id& base = id.base;
  const auto end = [](bool& owned, ibv_comp_channel*& channel, ibv_cq*& queue) {
    if (owned && queue != nullptr) ::ibv_destroy_cq(queue);
    if (owned && channel != nullptr) ::ibv_destroy_comp_channel(channel);
    if (owned) queue = nullptr, channel = nullptr;
    owned = false;
  };
  // A shared receive queue keeps the one that was made with it.
  if (base.srq == nullptr) end(id.owns_receive_queue, base.recv_cq_channel, base.recv_cq);
  end(id.owns_send_queue, base.send_cq_channel, base.send_cq);
}

template <class Make>
int make_queue_pair(Id& id, ibv_pd* domain, ibv_qp_init_attr& made, Make create) {
  rdma_cm_id& base = id.base;
  if (base.qp != nullptr || base.verbs == nullptr) return refuse(EINVAL);
  if (domain == nullptr) domain = base.pd;
  if (domain == nullptr || domain->context != base.verbs || (made.qp_type == IBV_QPT_UD) != id.datagram())
    return refuse(EINVAL);
  if (made.srq == nullptr) made.srq = base.srq;
  int error = make_queues(id, made);
  ibv_qp* queue = error != 0 ? nullptr : create(domain);
  if (error == 0 && queue == nullptr) error = errno;
  if (error == 0) {
    const std::lock_guard lock(id.manager->mutex);
    base.pd = domain;
    base.qp = queue;
    base.qp_type = made.qp_type;
    error = change(id, IBV_QPS_INIT);
    if (error == 0 && id.datagram()) error = change(id, IBV_QPS_RTR);
    if (error == 0 && id.datagram()) error = change(id, IBV_QPS_RTS);
    if (error != 0) base.qp = nullptr;
  }
  if (error == 0) return 0;
  if (queue != nullptr) ::ibv_destroy_qp(queue);
  end_queues(id);
  return refuse(error);
}

}  // namespace

int to_running(Id& id) {
  if (const int error = change(id, IBV_QPS_RTR)) return error;
  return change(id, IBV_QPS_RTS);
}

}  // namespace doorbell::cm

using namespace doorbell::cm;

DOORBELL_CM int rdma_create_qp(rdma_cm_id* base, ibv_pd* pd, ibv_qp_init_attr* made) {
  return make_queue_pair(of(base), pd, *made,
                         [made](ibv_pd* domain) { return ::ibv_create_qp(domain, made); });
}

DOORBELL_CM int rdma_create_qp_ex(rdma_cm_id* base, ibv_qp_init_attr_ex* made) {
  ibv_pd* given = (made->comp_mask & IBV_QP_INIT_ATTR_PD) != 0 ? made->pd : nullptr;
  // The longer structure begins as the plain one.
  return make_queue_pair(of(base), given, *reinterpret_cast<ibv_qp_init_attr*>(made),
                         [base, made](ibv_pd* domain) {
                           made->pd = domain;
                           made->comp_mask |= IBV_QP_INIT_ATTR_PD;
                           return ::ibv_create_qp_ex(base->verbs, made);
                         });
}

DOORBELL_CM void rdma_destroy_qp(rdma_cm_id* base) {
  Id& id = of(base);
  ibv_qp* queue = nullptr;
  {
    const std::lock_guard lock(id.manager->mutex);
    std::swap(queue, base->qp);
  }
  if (queue != nullptr) ::ibv_destroy_qp(queue);
  end_queues(id);
}

DOORBELL_CM int rdma_create_srq(rdma_cm_id* base, ibv_pd* pd, ibv_srq_init_attr* made) {
  if (base->srq != nullptr || base->verbs == nullptr) return refuse(EINVAL);
  if (pd == nullptr) pd = base->pd;
  if (pd == nullptr || pd->context != base->verbs) return refuse(EINVAL);
  base->srq = ::ibv_create_srq(pd, made);
  if (base->srq == nullptr) return -1;
  base->pd = pd;
  return 0;
}

DOORBELL_CM int rdma_create_srq_ex(rdma_cm_id* base, ibv_srq_init_attr_ex* made) {
  if (base->srq != nullptr || base->verbs == nullptr) return refuse(EINVAL);
  if ((made->comp_mask & IBV_SRQ_INIT_ATTR_PD) == 0 || made->pd == nullptr) made->pd = base->pd;
  if (made->pd == nullptr || made->pd->context != base->verbs) return refuse(EINVAL);
  made->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
  base->srq = ::ibv_create_srq_ex(base->verbs, made);
  if (base->srq == nullptr) return -1;
  base->pd = made->pd;
  return 0;
}

DOORBELL_CM void rdma_destroy_srq(rdma_cm_id* base) {
  if (base->srq != nullptr) ::ibv_destroy_srq(base->srq);
  base->srq = nullptr;
  if (base->qp == nullptr) end_queues(of(base));
}

DOORBELL_CM int rdma_init_qp_attr(rdma_cm_id* base, ibv_qp_attr* into, int* mask) {
  Id& id = of(base);
  const std::lock_guard lock(id.manager->mutex);
  if (const int error = attributes_for(id, into->qp_state, *into, *mask)) return refuse(error);
  return 0;
}
