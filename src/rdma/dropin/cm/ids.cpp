// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ids: making, addresses, ending.
#include <arpa/inet.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "rdma/dropin/cm/manager.hpp"

extern "C" int rdma_ack_cm_event(rdma_cm_event* event);

namespace doorbell::cm {

namespace {

constexpr u32 kLoopback = 127U << 24;
/// 127.77/16 is where the drop-in's devices have their addresses unless they are told otherwise.
constexpr u32 kDevices = 127U << 24 | 77U << 16;

}  // namespace

bool read_address(const sockaddr* from, Address& into) {
  if (from == nullptr) return false;
  if (from->sa_family == AF_INET) {
    sockaddr_in address;
    std::memcpy(&address, from, sizeof address);
    into = {ntohl(address.sin_addr.s_addr), ntohs(address.sin_port)};
    return true;
  }
  if (from->sa_family != AF_INET6) return false;
  sockaddr_in6 address;
  std::memcpy(&address, from, sizeof address);
  into.port = ntohs(address.sin6_port);
  if (IN6_IS_ADDR_UNSPECIFIED(&address.sin6_addr)) into.ip = 0;
  else if (IN6_IS_ADDR_LOOPBACK(&address.sin6_addr)) into.ip = kLoopback | 1;
  else if (IN6_IS_ADDR_V4MAPPED(&address.sin6_addr)) {
    u32 wire = 0;
    std::memcpy(&wire, address.sin6_addr.s6_addr + 12, sizeof wire);
    into.ip = ntohl(wire);
  } else {
    return false;
  }
  return true;
}

void write_address(rdma_end& into, u32 ip, u16 port) {
  into = {};
  into.sin.sin_family = AF_INET;
  into.sin.sin_addr.s_addr = htonl(ip);
  into.sin.sin_port = htons(port);
}

ibv_gid gid_of(u32 address) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xFF;
  const u32 wire = htonl(address);
  std::memcpy(gid.raw + 12, &wire, sizeof wire);
  return gid;
}

u32 address_of(const ibv_gid& gid) {
  u32 wire = 0;
  std::memcpy(&wire, gid.raw + 12, sizeof wire);
  return ntohl(wire);
}

void fill_route(Id& id, u32 shown) {
  constexpr u8 kExactly = 2;
  rdma_route& route = id.base.route;
  if (route.source.any.sa_family == 0 || id.source_port == 0)
    write_address(route.source, id.source, id.source_port);
  write_address(route.destination, shown, id.destination_port);
  route.ib.sgid = gid_of(id.source);
  route.ib.dgid = gid_of(id.destination);
  route.ib.pkey = 0xFFFF;
  ibv_sa_path_rec& path = id.path;
  path = {};
  path.dgid = route.ib.dgid;
  path.sgid = route.ib.sgid;
  path.hop_limit = 64;
  path.reversible = 1;
  path.numb_path = 1;
  path.pkey = 0xFFFF;
  path.mtu_selector = path.rate_selector = path.packet_life_time_selector = kExactly;
  path.mtu = id.mtu != 0 ? id.mtu : id.port->mtu;
  path.rate = IBV_RATE_100_GBPS;
  path.packet_life_time = 15;
}

namespace {

/// Attaches the id to a device.
void take_port(Id& id, Port& port) {
  id.port = &port;
  id.source = port.address;
  id.base.verbs = port.verbs;
  id.base.pd = port.domain;
  id.base.port_num = 1;
  id.base.route.ib.sgid = gid_of(port.address);
  id.base.route.ib.pkey = 0xFFFF;
}

/// With the manager's mutex. `listens`: the port is to be found by others.
int bind_locked(Id& id, const Address& to) {
  Manager& manager = *id.manager;
  if (id.state != Id::State::idle) return EINVAL;
  if (manager.ports().empty()) return ENODEV;
  Port* port = nullptr;
  bool of_host = to.ip == 0;
  if (!of_host) {
    port = manager.port_at(to.ip);
    if (port == nullptr) {
      // An address of this host that no device of the process has: what comes for it is this process's.
      if (!is_of_this_host(to.ip) || (to.ip & 0xFFFF0000) == kDevices) return ENODEV;
      of_host = true;
      port = manager.ports().front().get();
    }
  }
  const bool every = id.any = of_host;
  const auto space = static_cast<u32>(id.base.ps);
  if (port != nullptr) take_port(id, *port);
  if (to.port != 0) {
    if (manager.port_taken(space, to.port, id)) return id.any = false, EADDRINUSE;
    if (every) id.claim = manager.claim(space, to.port);
    if (every && !id.claim && errno == EADDRINUSE && !id.reuse) return id.any = false, EADDRINUSE;
    id.source_port = to.port;
  } else {
    constexpr int kTries = 64;
    for (int i = 0; i < kTries && id.source_port == 0; ++i) {
      const u16 free = manager.free_port(space);
      if (every) id.claim = manager.claim(space, free);
      if (!every || id.claim || errno != EADDRINUSE) id.source_port = free;
    }
    if (id.source_port == 0) return EADDRINUSE;
  }
  write_address(id.base.route.source, to.ip, id.source_port);
  id.state = Id::State::bound;
  return 0;
}

/// The device behind an address that a program calls; 0: nobody is there yet. Without the manager's mutex,
/// because this process may have to answer itself.
u32 find_device(Manager& manager, u32 port_space, const Address& to) {
  {
    const std::lock_guard lock(manager.mutex);
    if (manager.port_at(to.ip) != nullptr) return to.ip;
  }
  const bool unspecified = to.ip == 0;
  if (!unspecified && ((to.ip & 0xFFFF0000) == kDevices || !is_of_this_host(to.ip))) return to.ip;
  if (!unspecified && watch_device(to.ip)) return to.ip;
  {
    const std::lock_guard lock(manager.mutex);
    if (manager.listens(port_space, to.port)) return manager.ports().front()->address;
  }
  return find_port(port_space, to.port).value_or(0);
}

}  // namespace

u32 find_destination(Id& id) {
  Address to;
  if (!read_address(&id.base.route.destination.any, to)) return 0;
  return find_device(*id.manager, static_cast<u32>(id.base.ps), to);
}

}  // namespace doorbell::cm

using namespace doorbell::cm;
using doorbell::u32;

DOORBELL_CM rdma_event_channel* rdma_create_event_channel() {
  auto channel = std::make_unique<Channel>();
  channel->base.fd = channel->events.fd();
  if (channel->base.fd < 0) {
    errno = EMFILE;
    return nullptr;
  }
  return &channel.release()->base;
}

DOORBELL_CM void rdma_destroy_event_channel(rdma_event_channel* channel) {
  delete &of(channel);
}

DOORBELL_CM int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** into, void* context,
                               rdma_port_space space) {
  if (space != RDMA_PS_TCP && space != RDMA_PS_UDP) return refuse(EOPNOTSUPP);
  auto id = std::make_unique<Id>();
  if (channel == nullptr) {
    id->synchronous = id->own_channel = true;
    channel = rdma_create_event_channel();
    if (channel == nullptr) return -1;
  }
  id->base.channel = channel;
  id->base.context = context;
  id->base.ps = space;
  id->base.qp_type = space == RDMA_PS_TCP ? IBV_QPT_RC : IBV_QPT_UD;
  Manager& manager = Manager::get();
  const std::lock_guard lock(manager.mutex);
  manager.adopt(*id);
  *into = &id.release()->base;
  return 0;
}

DOORBELL_CM int rdma_destroy_id(rdma_cm_id* base) {
  Id& id = of(base);
  Manager& manager = *id.manager;
  if (base->event != nullptr) {
    rdma_ack_cm_event(base->event);
    base->event = nullptr;
  }
  std::unique_lock lock(manager.mutex);
  if (Manager::existing() == &manager) manager.forget(id);
  // Requests that the program has not seen end with who listens.
  std::vector<Event*> unseen;
  std::vector<Id*> children;
  auto& queue = of(base->channel).events;
  queue.remove([&](Event* event) {
    if (event->base.listen_id != base) return false;
    children.push_back(&of(event->base.id));
    unseen.push_back(event);
    return true;
  });
  queue.remove([&](Event* event) {
    if (event->base.id != base && std::ranges::find(children, &of(event->base.id)) == children.end())
      return false;
    unseen.push_back(event);
    return true;
  });
  for (Id* child : children) {
    manager.forget(*child);
    delete child;
  }
  for (Event* event : unseen) delete event;
  manager.acknowledged.wait(lock, [&id] { return id.events_acknowledged == id.events_taken.load(); });
  lock.unlock();
  if (id.own_channel) rdma_destroy_event_channel(base->channel);
  delete &id;
  return 0;
}

DOORBELL_CM int rdma_bind_addr(rdma_cm_id* base, sockaddr* address) {
  Id& id = of(base);
  Address to;
  if (!read_address(address, to)) return refuse(address == nullptr ? EINVAL : EAFNOSUPPORT);
  const std::lock_guard lock(id.manager->mutex);
  if (const int error = bind_locked(id, to)) return refuse(error);
  return 0;
}

DOORBELL_CM int rdma_resolve_addr(rdma_cm_id* base, sockaddr* from, sockaddr* address, int) {
  Id& id = of(base);
  Address to, own;
  if (!read_address(address, to)) return refuse(address == nullptr ? EINVAL : EAFNOSUPPORT);
  if (from != nullptr && !read_address(from, own)) return refuse(EAFNOSUPPORT);
  constexpr u32 kMulticast = 0xE0000000;
  if (to.ip >= kMulticast) return refuse(EOPNOTSUPP);
  {
    const std::lock_guard lock(id.manager->mutex);
    if (id.manager->ports().empty()) return refuse(ENODEV);
    if (id.state == Id::State::idle) {
      if (const int error = bind_locked(id, own)) return refuse(error);
      // The port is a caller's: nobody looks for it.
      id.claim.reset();
    }
    if (id.state != Id::State::bound) return refuse(EINVAL);
    if (id.port == nullptr) {
      Port* same = id.manager->port_at(to.ip);
      take_port(id, same != nullptr ? *same : *id.manager->ports().front());
    }
    id.any = false;
  }
  const u32 device = find_device(*id.manager, static_cast<u32>(base->ps), to);
  {
    const std::lock_guard lock(id.manager->mutex);
    id.destination = device;
    id.destination_port = to.port;
    write_address(base->route.source, id.source, id.source_port);
    fill_route(id, to.ip);
    if (device == 0) base->route.ib.dgid = gid_of(to.ip);
    id.state = Id::State::addressed;
    id.manager->deliver(id.manager->make_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0));
  }
  return complete(id);
}

DOORBELL_CM int rdma_resolve_route(rdma_cm_id* base, int) {
  Id& id = of(base);
  {
    const std::lock_guard lock(id.manager->mutex);
    if (id.state != Id::State::addressed) return refuse(EINVAL);
    id.state = Id::State::routed;
    base->route.path_rec = &id.path;
    base->route.num_paths = 1;
    id.manager->deliver(id.manager->make_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0));
  }
  return complete(id);
}

DOORBELL_CM int rdma_listen(rdma_cm_id* base, int backlog) {
  Id& id = of(base);
  const std::lock_guard lock(id.manager->mutex);
  if (id.state == Id::State::idle)
    if (const int error = bind_locked(id, {})) return refuse(error);
  if (id.state != Id::State::bound && id.state != Id::State::listening) return refuse(EINVAL);
  if (const int error = id.manager->listen(id, backlog)) return refuse(error);
  id.state = Id::State::listening;
  return 0;
}

DOORBELL_CM __be16 rdma_get_src_port(rdma_cm_id* id) {
  return id->route.source.sin.sin_port;
}
DOORBELL_CM __be16 rdma_get_dst_port(rdma_cm_id* id) {
  return id->route.destination.sin.sin_port;
}

DOORBELL_CM int rdma_set_option(rdma_cm_id* base, int level, int name, void* value, size_t bytes) {
  Id& id = of(base);
  if (level != RDMA_OPTION_ID) return refuse(EOPNOTSUPP);
  const std::lock_guard lock(id.manager->mutex);
  switch (name) {
    case RDMA_OPTION_ID_TOS:
      return bytes == 1 ? 0 : refuse(EINVAL);
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
      if (bytes != sizeof(int)) return refuse(EINVAL);
      if (name == RDMA_OPTION_ID_REUSEADDR) id.reuse = *static_cast<const int*>(value) != 0;
      return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT: {
      constexpr doorbell::u8 kMost = 31;
      const auto timeout = *static_cast<const doorbell::u8*>(value);
      if (bytes != 1 || timeout > kMost) return refuse(EINVAL);
      id.ack_timeout = timeout;
      return 0;
    }
    default:
      return refuse(EOPNOTSUPP);
  }
}

DOORBELL_CM int rdma_migrate_id(rdma_cm_id* base, rdma_event_channel* channel) {
  Id& id = of(base);
  const bool own = channel == nullptr;
  if (own && (channel = rdma_create_event_channel()) == nullptr) return -1;
  rdma_event_channel* before = base->channel;
  const bool owned = id.own_channel;
  if (base->event != nullptr && own != owned) {
    rdma_ack_cm_event(base->event);
    base->event = nullptr;
  }
  {
    std::unique_lock lock(id.manager->mutex);
    std::vector<Event*> moved;
    of(before).events.remove([&](Event* event) {
      if (event->base.id != base && event->base.listen_id != base) return false;
      moved.push_back(event);
      return true;
    });
    base->channel = channel;
    for (Event* event : moved) {
      if (event->base.listen_id == base) event->base.id->channel = channel;
      of(channel).events.push(event);
    }
    id.own_channel = id.synchronous = own;
    id.manager->acknowledged.wait(lock, [&id] { return id.events_acknowledged == id.events_taken.load(); });
  }
  if (owned) rdma_destroy_event_channel(before);
  return 0;
}

DOORBELL_CM ibv_context** rdma_get_devices(int* count) {
  Manager& manager = Manager::get();
  const std::lock_guard lock(manager.mutex);
  const auto& ports = manager.ports();
  auto** list = static_cast<ibv_context**>(std::calloc(ports.size() + 1, sizeof(ibv_context*)));
  if (list == nullptr) return nullptr;
  for (std::size_t i = 0; i < ports.size(); ++i) list[i] = ports[i]->verbs;
  if (count != nullptr) *count = static_cast<int>(ports.size());
  return list;
}

DOORBELL_CM void rdma_free_devices(ibv_context** list) {
  std::free(list);
}
