// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Synchronous ids, endpoints and names: the shorter way to a connection.
#include <netdb.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "rdma/dropin/cm/manager.hpp"

extern "C" {
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** into);
int rdma_ack_cm_event(rdma_cm_event* event);
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** into, void* context, rdma_port_space space);
int rdma_destroy_id(rdma_cm_id* id);
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address);
int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout);
int rdma_resolve_route(rdma_cm_id* id, int timeout);
int rdma_migrate_id(rdma_cm_id* id, rdma_event_channel* channel);
int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* made);
void rdma_destroy_qp(rdma_cm_id* id);
void rdma_destroy_srq(rdma_cm_id* id);
void rdma_freeaddrinfo(rdma_addrinfo* list);
}

namespace doorbell::cm {

int complete(Id& id) {
  if (!id.synchronous) return 0;
  rdma_cm_id& base = id.base;
  if (base.event != nullptr) {
    rdma_ack_cm_event(base.event);
    base.event = nullptr;
  }
  if (rdma_get_cm_event(base.channel, &base.event) != 0) return -1;
  const int status = base.event->status;
  if (base.event->event == RDMA_CM_EVENT_REJECTED) return refuse(ECONNREFUSED);
  if (status != 0) return refuse(status < 0 ? -status : ECONNREFUSED);
  return 0;
}

namespace {

sockaddr* copy(const sockaddr* from, socklen_t bytes) {
  void* made = std::malloc(bytes);
  if (made != nullptr) std::memcpy(made, from, bytes);
  return static_cast<sockaddr*>(made);
}

}  // namespace

}  // namespace doorbell::cm

using namespace doorbell::cm;

DOORBELL_CM int rdma_create_ep(rdma_cm_id** into, rdma_addrinfo* at, ibv_pd* pd, ibv_qp_init_attr* made) {
  constexpr int kTimeoutMs = 2000;
  rdma_cm_id* base = nullptr;
  if (rdma_create_id(nullptr, &base, nullptr, static_cast<rdma_port_space>(at->ai_port_space)) != 0)
    return -1;
  Id& id = of(base);
  if (at->ai_qp_type != 0 && (at->ai_qp_type == IBV_QPT_UD) == id.datagram())
    base->qp_type = static_cast<ibv_qp_type>(at->ai_qp_type);
  int failed = 0;
  if ((at->ai_flags & RAI_PASSIVE) != 0) {
    failed = rdma_bind_addr(base, at->ai_src_addr);
    if (failed == 0 && made != nullptr) {
      id.init = *made;
      id.has_init = true;
    }
    id.init_domain = pd;
  } else {
    failed = rdma_resolve_addr(base, at->ai_src_addr, at->ai_dst_addr, kTimeoutMs);
    if (failed == 0) failed = rdma_resolve_route(base, kTimeoutMs);
    if (failed == 0 && made != nullptr) {
      made->qp_type = base->qp_type;
      failed = rdma_create_qp(base, pd, made);
    } else if (failed == 0 && pd != nullptr) {
      base->pd = pd;
    }
    if (failed == 0 && at->ai_connect_len != 0 && at->ai_connect != nullptr) {
      const auto* data = static_cast<const doorbell::u8*>(at->ai_connect);
      id.connect_data.assign(data, data + at->ai_connect_len);
    }
  }
  if (failed != 0) {
    const int error = errno;
    rdma_destroy_id(base);
    return refuse(error);
  }
  *into = base;
  return 0;
}

DOORBELL_CM void rdma_destroy_ep(rdma_cm_id* base) {
  if (base->qp != nullptr) rdma_destroy_qp(base);
  if (base->srq != nullptr) rdma_destroy_srq(base);
  rdma_destroy_id(base);
}

DOORBELL_CM int rdma_get_request(rdma_cm_id* listener, rdma_cm_id** into) {
  Id& listening = of(listener);
  if (!listening.synchronous) return refuse(EINVAL);
  if (listener->event != nullptr) {
    rdma_ack_cm_event(listener->event);
    listener->event = nullptr;
  }
  rdma_cm_event* event = nullptr;
  for (;;) {
    if (rdma_get_cm_event(listener->channel, &event) != 0) return -1;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) break;
    // Of a request that was not taken further.
    rdma_ack_cm_event(event);
  }
  rdma_cm_id* base = event->id;
  int failed = event->status != 0 ? refuse(-event->status) : 0;
  if (failed == 0) failed = rdma_migrate_id(base, nullptr);
  if (failed == 0 && listening.has_init) {
    ibv_qp_init_attr made = listening.init;
    made.qp_type = base->qp_type;
    failed = rdma_create_qp(base, listening.init_domain, &made);
  }
  if (failed != 0) {
    const int error = errno;
    rdma_ack_cm_event(event);
    rdma_destroy_id(base);
    return refuse(error);
  }
  // The event, with the peer's private data, stays readable until the next one.
  base->event = event;
  *into = base;
  return 0;
}

DOORBELL_CM int rdma_getaddrinfo(const char* node, const char* service, const rdma_addrinfo* hints,
                                 rdma_addrinfo** into) {
  const bool has_hints = hints != nullptr;
  const int flags = has_hints ? hints->ai_flags : 0;
  const bool passive = (flags & RAI_PASSIVE) != 0;
  const bool given = has_hints && (passive ? hints->ai_src_len : hints->ai_dst_len) != 0;
  if (node == nullptr && service == nullptr && !given) return refuse(EINVAL);
  if (has_hints && hints->ai_family != 0 && hints->ai_family != AF_INET && hints->ai_family != AF_INET6)
    return EAI_FAMILY;
  auto* info = static_cast<rdma_addrinfo*>(std::calloc(1, sizeof(rdma_addrinfo)));
  if (info == nullptr) return EAI_MEMORY;
  info->ai_flags = flags;
  info->ai_port_space = has_hints && hints->ai_port_space != 0 ? hints->ai_port_space : int{RDMA_PS_TCP};
  info->ai_qp_type = has_hints && hints->ai_qp_type != 0       ? hints->ai_qp_type
                     : info->ai_port_space == int{RDMA_PS_TCP} ? int{IBV_QPT_RC}
                                                               : int{IBV_QPT_UD};
  if (node != nullptr || service != nullptr) {
    addrinfo wanted{};
    // Devices have IPv4 addresses.
    wanted.ai_family = has_hints && hints->ai_family != 0 ? hints->ai_family : AF_INET;
    wanted.ai_flags = (passive ? AI_PASSIVE : 0) | ((flags & RAI_NUMERICHOST) != 0 ? AI_NUMERICHOST : 0);
    wanted.ai_socktype = info->ai_port_space == int{RDMA_PS_TCP} ? SOCK_STREAM : SOCK_DGRAM;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(node, service, &wanted, &found)) {
      std::free(info);
      return error;
    }
    info->ai_family = found->ai_family;
    (passive ? info->ai_src_len : info->ai_dst_len) = found->ai_addrlen;
    (passive ? info->ai_src_addr : info->ai_dst_addr) = copy(found->ai_addr, found->ai_addrlen);
    ::freeaddrinfo(found);
  }
  if (has_hints && info->ai_src_addr == nullptr && hints->ai_src_len != 0) {
    info->ai_src_len = hints->ai_src_len;
    info->ai_src_addr = copy(hints->ai_src_addr, hints->ai_src_len);
  }
  if (has_hints && info->ai_dst_addr == nullptr && hints->ai_dst_len != 0) {
    info->ai_dst_len = hints->ai_dst_len;
    info->ai_dst_addr = copy(hints->ai_dst_addr, hints->ai_dst_len);
  }
  if (info->ai_family == 0)
    info->ai_family = (info->ai_src_addr != nullptr ? info->ai_src_addr : info->ai_dst_addr)->sa_family;
  *into = info;
  return 0;
}

DOORBELL_CM void rdma_freeaddrinfo(rdma_addrinfo* list) {
  while (list != nullptr) {
    rdma_addrinfo* next = list->ai_next;
    for (void* part : {static_cast<void*>(list->ai_src_addr), static_cast<void*>(list->ai_dst_addr),
                       static_cast<void*>(list->ai_src_canonname), static_cast<void*>(list->ai_dst_canonname),
                       list->ai_route, list->ai_connect})
      std::free(part);
    std::free(list);
    list = next;
  }
}
