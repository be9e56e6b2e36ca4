// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <iterator>

#include "rdma/dropin/cm/manager.hpp"

using namespace doorbell::cm;

namespace {

/// Whose acknowledgements count the event.
Id& counted_by(const Event& event) {
  return of(event.base.listen_id != nullptr ? event.base.listen_id : event.base.id);
}

}  // namespace

DOORBELL_CM int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** into) {
  Event* event = nullptr;
  if (!of(channel).events.take(&event, [](Event* taken) { counted_by(*taken).events_taken.fetch_add(1); }))
    return -1;
  Id& id = counted_by(*event);
  const std::lock_guard lock(id.manager->mutex);
  if (event->base.event == RDMA_CM_EVENT_CONNECT_REQUEST) --id.waiting;
  if (event->base.event == RDMA_CM_EVENT_DISCONNECTED) id.over = true;
  *into = &event->base;
  return 0;
}

DOORBELL_CM int rdma_ack_cm_event(rdma_cm_event* base) {
  if (base == nullptr) return refuse(EINVAL);
  auto* event = reinterpret_cast<Event*>(base);
  Id& id = counted_by(*event);
  {
    Manager& manager = *id.manager;
    const std::lock_guard lock(manager.mutex);
    ++id.events_acknowledged;
    manager.acknowledged.notify_all();
  }
  delete event;
  return 0;
}

DOORBELL_CM const char* rdma_event_str(rdma_cm_event_type event) {
  constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  const auto index = static_cast<std::size_t>(event);
  return index < std::size(kNames) ? kNames[index] : "UNKNOWN EVENT";
}
