// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completion queues, completion channels, and the events of both kinds.
#include <pthread.h>

#include <algorithm>
#include <bit>
#include <ctime>

#include "rdma/dropin/devices.hpp"

namespace doorbell::dropin {

namespace {

/// A poll of an empty queue moves packets: the program's thread is there, while another would have to wake
/// up.
int poll_completions(ibv_cq* base, int most, ibv_wc* into) {
  Cq& cq = of<Cq>(base);
  constexpr int kBatch = 16;
  roce::Completion batch[kBatch];
  int taken = 0;
  bool progressed = false;
  while (taken < most) {
    const int wanted = std::min(kBatch, most - taken);
    const int got = static_cast<int>(cq.queue->poll({batch, static_cast<std::size_t>(wanted)}));
    for (int i = 0; i < got; ++i) to_wc(batch[i], into + taken + i);
    taken += got;
    if (got == wanted) continue;
    if (taken != 0 || progressed) break;
    (void)cq.attendant->on_empty_poll();
    progressed = true;
  }
  return taken;
}

int request_notification(ibv_cq* base, int solicited_only) {
  Cq& cq = of<Cq>(base);
  cq.queue->arm(solicited_only != 0);
  cq.attendant->on_arm();
  return 0;
}

void prepare(pthread_mutex_t& mutex, pthread_cond_t& condition) {
  ::pthread_mutex_init(&mutex, nullptr);
  ::pthread_cond_init(&condition, nullptr);
}

/// Room for as many and one at the least, a power of two, as ConnectX makes it. perftest's `-e` relies on it:
/// it asks for one entry and leaves a completion there when the acknowledgement comes behind the peer's
/// message.
u32 room_for(const Context& context, u32 entries) {
  return std::min(std::bit_ceil(entries + 1), context.nic->limits().completions);
}

Cq* make_queue(ibv_context* base, u32 entries, void* its_context, ibv_comp_channel* channel, u32 vector) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  if (entries == 0 || entries > context.nic->limits().completions ||
      vector >= static_cast<u32>(base->num_comp_vectors))
    return refused(EINVAL);
  auto cq = std::make_unique<Cq>();
  if (const int error = context.nic->make_completion_queue(room_for(context, entries), cq->queue))
    return refused(error);
  cq->attendant = &context.adapter->attendant();
  cq->queue->owner = cq.get();
  ibv_cq& plain = *cq->plain();
  plain.context = base;
  plain.channel = channel;
  plain.cq_context = its_context;
  plain.handle = context.adapter->next_handle();
  plain.cqe = static_cast<int>(cq->queue->entries());
  prepare(plain.mutex, plain.cond);
  if (channel != nullptr) {
    cq->channel = &of<Channel>(channel);
    const std::lock_guard lock(cq->channel->events.mutex());
    ++channel->refcnt;
  }
  const std::lock_guard lock(context.mutex);
  context.completion_queues.insert(cq.get());
  return cq.release();
}

ibv_cq_ex* make_extended_queue(ibv_context* base, ibv_cq_init_attr_ex* attributes) {
  constexpr u32 kMasks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
  constexpr u64 kFields = u64{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
                          IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
  const u32 flags = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? attributes->flags : 0;
  if ((attributes->comp_mask & ~kMasks) != 0) return refused(EINVAL);
  // Without room a completion is lost here as on a queue that says so: no program may count on the other.
  if ((attributes->wc_flags & ~kFields) != 0 || (flags & ~u32{IBV_CREATE_CQ_ATTR_SINGLE_THREADED}) != 0)
    return refused(EOPNOTSUPP);
  Cq* cq =
      make_queue(base, attributes->cqe, attributes->cq_context, attributes->channel, attributes->comp_vector);
  if (cq == nullptr) return nullptr;
  cq->alone = (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
  if ((attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0 && attributes->parent_domain != nullptr) {
    cq->parent = &of<Pd>(attributes->parent_domain);
    cq->parent->users.fetch_add(1);
  }
  set_extended_polling(*cq, attributes->wc_flags);
  return &cq->base;
}

}  // namespace

void wait_for_acknowledgement(pthread_mutex_t& mutex, pthread_cond_t& condition, const u32& done, u32 taken,
                              const char* object) {
  constexpr int kPatienceS = 10;
  bool said = false;
  ::pthread_mutex_lock(&mutex);
  while (done != taken) {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += kPatienceS;
    if (::pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT && !said) {
      said = true;
      complain("destroying a " + std::string(object) + " waits for " + std::to_string(taken - done) +
               " event(s) that the program took and has not acknowledged");
    }
  }
  ::pthread_mutex_unlock(&mutex);
}

void set_completion_operations(Context& context) {
  context.base()->ops.poll_cq = poll_completions;
  context.base()->ops.req_notify_cq = request_notification;
  context.verbs.create_cq_ex = make_extended_queue;
}

roce::Listener listener() {
  const auto tell = [](ibv_context* context, roce::Event event, auto set) {
    AsyncEvent entry;
    set(entry.event.element);
    entry.event.event_type = static_cast<ibv_event_type>(event);
    of(context).async.push(entry);
  };
  return {.completion =
              [](roce::CompletionQueue& queue) {
                Cq& cq = *static_cast<Cq*>(queue.owner);
                if (cq.channel != nullptr) cq.channel->events.push(&cq);
              },
          .queue_pair =
              [tell](roce::QueuePair& queue, roce::Event event) {
                for (Qp* one = static_cast<Qp*>(queue.owner); one != nullptr; one = one->next) {
                  ibv_qp* qp = one->plain();
                  tell(qp->context, event, [qp](auto& element) { element.qp = qp; });
                }
              },
          .completion_queue =
              [tell](roce::CompletionQueue& queue, roce::Event event) {
                ibv_cq* cq = static_cast<Cq*>(queue.owner)->plain();
                tell(cq->context, event, [cq](auto& element) { element.cq = cq; });
              },
          .shared_receive_queue =
              [tell](roce::SharedReceiveQueue& queue, roce::Event event) {
                ibv_srq* srq = &static_cast<Srq*>(queue.owner)->base;
                tell(srq->context, event, [srq](auto& element) { element.srq = srq; });
              }};
}

namespace {

enum class Subject : u8 { queue_pair, completion_queue, shared_receive_queue, other };
Subject subject_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return Subject::completion_queue;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return Subject::queue_pair;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return Subject::shared_receive_queue;
    default:
      return Subject::other;
  }
}

template <class Base>
void end_events_of(Context& context, Base& base, Subject subject, const u32& taken, const char* name) {
  context.async.remove([&base, subject](const AsyncEvent& one) {
    return subject_of(one.event.event_type) == subject && static_cast<void*>(one.event.element.qp) == &base;
  });
  if (!context.dead) wait_for_acknowledgement(base.mutex, base.cond, base.events_completed, taken, name);
}

template <class Object>
void acknowledge(Object& object, u32& done, u32 events) {
  ::pthread_mutex_lock(&object.mutex);
  done += events;
  ::pthread_cond_signal(&object.cond);
  ::pthread_mutex_unlock(&object.mutex);
}

}  // namespace

void end_events(Context& context, Qp& queue_pair) {
  end_events_of(context, *queue_pair.plain(), Subject::queue_pair, queue_pair.async_taken, "queue pair");
}

void end_events(Context& context, Srq& receives) {
  end_events_of(context, receives.base, Subject::shared_receive_queue, receives.async_taken,
                "shared receive queue");
}

}  // namespace doorbell::dropin

using namespace doorbell::dropin;
using doorbell::u32;

DOORBELL_VERBS ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (of(context).dead) return refused(EIO);
  auto channel = std::make_unique<Channel>();
  if (channel->events.fd() < 0) return refused(EMFILE);
  channel->base.context = context;
  channel->base.fd = channel->events.fd();
  return &channel.release()->base;
}

DOORBELL_VERBS int ibv_destroy_comp_channel(ibv_comp_channel* base) {
  Channel& channel = of<Channel>(base);
  {
    const std::lock_guard lock(channel.events.mutex());
    if (base->refcnt != 0) return EBUSY;
  }
  delete &channel;
  return 0;
}

DOORBELL_VERBS ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* its_context,
                                     ibv_comp_channel* channel, int vector) {
  if (entries < 0 || vector < 0) return refused(EINVAL);
  Cq* cq = make_queue(context, static_cast<u32>(entries), its_context, channel, static_cast<u32>(vector));
  return cq == nullptr ? nullptr : cq->plain();
}

DOORBELL_VERBS int ibv_resize_cq(ibv_cq* base, int entries) {
  Cq& cq = of<Cq>(base);
  if (of(base->context).dead) return EIO;
  const Context& context = of(base->context);
  if (entries <= 0 || static_cast<u32>(entries) > context.nic->limits().completions) return EINVAL;
  // Requests that need no answer are complete once posted, also where another thread is at it just now.
  (void)context.nic->progress_waiting();
  if (const int error = cq.queue->resize(room_for(context, static_cast<u32>(entries)))) return error;
  base->cqe = static_cast<int>(cq.queue->entries());
  return 0;
}

DOORBELL_VERBS int ibv_destroy_cq(ibv_cq* base) {
  Cq& cq = of<Cq>(base);
  Context& context = of(base->context);
  if (const int error = busy(cq.users)) return error;
  {
    const std::lock_guard lock(context.mutex);
    context.completion_queues.erase(&cq);
  }
  if (!context.dead) context.adapter->rings().forget(*cq.queue);
  // Afterwards nothing tells of it any more, so what is forgotten now stays forgotten.
  cq.queue.reset();
  u32 taken = 0;
  if (cq.channel != nullptr) {
    cq.channel->events.remove([&cq](const Cq* one) { return one == &cq; });
    const std::lock_guard lock(cq.channel->events.mutex());
    taken = cq.events_taken;
    --cq.channel->base.refcnt;
  }
  context.async.remove([base](const AsyncEvent& one) {
    return subject_of(one.event.event_type) == Subject::completion_queue && one.event.element.cq == base;
  });
  if (!context.dead) {
    wait_for_acknowledgement(base->mutex, base->cond, base->comp_events_completed, taken, "completion queue");
    wait_for_acknowledgement(base->mutex, base->cond, base->async_events_completed, cq.async_taken,
                             "completion queue");
  }
  if (cq.parent != nullptr) cq.parent->users.fetch_sub(1);
  delete &cq;
  return 0;
}

DOORBELL_VERBS int ibv_get_cq_event(ibv_comp_channel* base, ibv_cq** into, void** its_context) {
  Cq* cq = nullptr;
  if (!of<Channel>(base).events.take(&cq, [](Cq* taken) { ++taken->events_taken; })) return -1;
  *into = cq->plain();
  *its_context = cq->plain()->cq_context;
  return 0;
}

DOORBELL_VERBS void ibv_ack_cq_events(ibv_cq* cq, unsigned events) {
  if (events != 0) acknowledge(*cq, cq->comp_events_completed, events);
}

DOORBELL_VERBS int ibv_get_async_event(ibv_context* base, ibv_async_event* into) {
  AsyncEvent entry;
  const bool got = of(base).async.take(&entry, [](const AsyncEvent& taken) {
    const auto& element = taken.event.element;
    switch (subject_of(taken.event.event_type)) {
      case Subject::queue_pair:
        ++of<Qp>(element.qp).async_taken;
        break;
      case Subject::completion_queue:
        ++of<Cq>(element.cq).async_taken;
        break;
      case Subject::shared_receive_queue:
        ++of<Srq>(element.srq).async_taken;
        break;
      case Subject::other:
        break;
    }
  });
  if (!got) return -1;
  *into = entry.event;
  return 0;
}

DOORBELL_VERBS void ibv_ack_async_event(ibv_async_event* event) {
  switch (subject_of(event->event_type)) {
    case Subject::queue_pair:
      acknowledge(*event->element.qp, event->element.qp->events_completed, 1);
      break;
    case Subject::completion_queue:
      acknowledge(*event->element.cq, event->element.cq->async_events_completed, 1);
      break;
    case Subject::shared_receive_queue:
      acknowledge(*event->element.srq, event->element.srq->events_completed, 1);
      break;
    case Subject::other:
      break;
  }
}
