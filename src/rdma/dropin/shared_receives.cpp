// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Shared receive queues.
#include <pthread.h>

#include "rdma/dropin/devices.hpp"

namespace doorbell::dropin {

namespace {

int post_receive(ibv_srq* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Srq& srq = of<Srq>(base);
  for (; wr != nullptr; wr = wr->next) {
    int error = EINVAL;
    if (wr->num_sge >= 0)
      error = srq.queue->post(wr->wr_id, {reinterpret_cast<const roce::Sge*>(wr->sg_list),
                                          static_cast<std::size_t>(wr->num_sge)});
    if (error == 0) continue;
    *bad = wr;
    return error;
  }
  return 0;
}

void count_users(Srq& srq, int by) {
  srq.domain->users.fetch_add(static_cast<u32>(by));
  if (srq.completions == nullptr) return;
  srq.xrc_domain->users.fetch_add(static_cast<u32>(by));
  srq.completions->users.fetch_add(static_cast<u32>(by));
}

/// `xrc_domain` and `completions`: of XRC.
ibv_srq* make_queue(ibv_pd* pd, void* its_context, ibv_srq_attr& attributes, Xrcd* xrc_domain = nullptr,
                    Cq* completions = nullptr) {
  Context& context = of(pd->context);
  if (context.dead) return refused(EIO);
  const roce::Limits& limits = context.nic->limits();
  if (attributes.max_wr == 0 || attributes.max_wr > limits.requests || attributes.max_sge > limits.sges)
    return refused(EINVAL);
  auto srq = std::make_unique<Srq>();
  srq->domain = &of<Pd>(pd);
  srq->xrc_domain = xrc_domain;
  srq->completions = completions;
  // A limit is set by ibv_modify_srq alone.
  const roce::SharedReceiveOptions options{
      .protection_domain = srq->domain->number,
      .requests = attributes.max_wr,
      .sges = attributes.max_sge,
      .completions = completions != nullptr ? completions->queue.get() : nullptr,
      .xrc_domain = xrc_domain != nullptr ? xrc_domain->domain->number : 0};
  if (const int error = context.nic->make_shared_receive_queue(options, srq->queue)) return refused(error);
  srq->queue->owner = srq.get();
  attributes.max_wr = srq->queue->max_requests();
  attributes.max_sge = srq->queue->max_sges();
  srq->base.context = pd->context;
  srq->base.srq_context = its_context;
  srq->base.pd = pd;
  srq->base.handle = context.adapter->next_handle();
  ::pthread_mutex_init(&srq->base.mutex, nullptr);
  ::pthread_cond_init(&srq->base.cond, nullptr);
  count_users(*srq, 1);
  const std::lock_guard lock(context.mutex);
  context.shared_receives.insert(srq.get());
  return &srq.release()->base;
}

ibv_srq* make_extended_queue(ibv_context*, ibv_srq_init_attr_ex* attributes) {
  constexpr u32 kOfXrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
  const u32 mask = attributes->comp_mask;
  const auto type = (mask & IBV_SRQ_INIT_ATTR_TYPE) != 0 ? attributes->srq_type : IBV_SRQT_BASIC;
  if ((type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC) ||
      (mask & ~u32{IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | kOfXrc}) != 0)
    return refused(EOPNOTSUPP);
  if ((mask & IBV_SRQ_INIT_ATTR_PD) == 0 || attributes->pd == nullptr) return refused(EINVAL);
  if (type == IBV_SRQT_XRC) {
    if ((mask & kOfXrc) != kOfXrc || attributes->xrcd == nullptr || attributes->cq == nullptr)
      return refused(EINVAL);
    return make_queue(attributes->pd, attributes->srq_context, attributes->attr, &of<Xrcd>(attributes->xrcd),
                      &of<Cq>(attributes->cq));
  }
  if ((mask & kOfXrc) != 0) return refused(EINVAL);
  return make_queue(attributes->pd, attributes->srq_context, attributes->attr);
}

int number_of(ibv_srq* base, u32* into) {
  if (of(base->context).dead) return EIO;
  *into = of<Srq>(base).queue->number();
  return 0;
}

}  // namespace

void set_receive_operations(Context& context) {
  context.base()->ops.post_srq_recv = post_receive;
  context.verbs.create_srq_ex = make_extended_queue;
  context.verbs.get_srq_num = number_of;
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;

DOORBELL_VERBS ibv_srq* ibv_create_srq(ibv_pd* pd, ibv_srq_init_attr* attributes) {
  return make_queue(pd, attributes->srq_context, attributes->attr);
}

DOORBELL_VERBS int ibv_modify_srq(ibv_srq* base, ibv_srq_attr* attributes, int mask) {
  if (of(base->context).dead) return EIO;
  // The device says that it cannot change the size of one.
  if ((mask & ~IBV_SRQ_LIMIT) != 0) return (mask & IBV_SRQ_MAX_WR) != 0 ? EOPNOTSUPP : EINVAL;
  if ((mask & IBV_SRQ_LIMIT) == 0) return 0;
  return of<Srq>(base).queue->set_limit(attributes->srq_limit);
}

DOORBELL_VERBS int ibv_query_srq(ibv_srq* base, ibv_srq_attr* into) {
  if (of(base->context).dead) return EIO;
  const auto& queue = *of<Srq>(base).queue;
  *into = {.max_wr = queue.max_requests(), .max_sge = queue.max_sges(), .srq_limit = queue.limit()};
  return 0;
}

DOORBELL_VERBS int ibv_destroy_srq(ibv_srq* base) {
  Srq& srq = of<Srq>(base);
  Context& context = of(base->context);
  if (const int error = busy(srq.users)) return error;
  {
    const std::lock_guard lock(context.mutex);
    context.shared_receives.erase(&srq);
  }
  srq.queue.reset();
  end_events(context, srq);
  count_users(srq, -1);
  delete &srq;
  return 0;
}
