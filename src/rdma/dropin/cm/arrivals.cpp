// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The effects of messages: connections find theirs, requests their listener, and programs their events.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "rdma/dropin/cm/manager.hpp"

namespace doorbell::cm {

namespace {

/// The program's part of a message's private data, in an event.
const void* keep(Event& event, const Message& message, std::size_t from, u8& bytes) {
  const std::size_t all = private_bytes(message.kind);
  bytes = static_cast<u8>(all - from);
  std::memcpy(event.private_data.data(), message.private_data.data() + from, all - from);
  return event.private_data.data();
}

ibv_ah_attr way_to(u32 address) {
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = 1;
  way.grh.dgid = gid_of(address);
  way.grh.hop_limit = 64;
  return way;
}

}  // namespace

Event& Manager::make_event(Id& id, rdma_cm_event_type type, int status) {
  auto* event = new Event;
  event->base.id = &id.base;
  event->base.event = type;
  event->base.status = status;
  return *event;
}

void Manager::arrived(Port& port, u32 source, const Message& m) {
  if (m.kind == Kind::request || m.kind == Kind::datagram_request) {
    const bool datagram = m.kind == Kind::datagram_request;
    const auto it = called_.find({source, datagram ? m.remote_id : m.local_id, datagram});
    if (it == called_.end()) requested(port, source, m);
    else it->second->arrived(m, now());
    return;
  }
  const auto it = connections_.find(m.remote_id);
  Connection* connection = it == connections_.end() ? nullptr : it->second.get();
  // A stranger's message, or one of an earlier connection, changes nothing.
  const bool known = connection != nullptr && connection->peer == source &&
                     (connection->datagram() || connection->remote_id() == 0 ||
                      connection->remote_id() == m.local_id || m.kind == Kind::reject);
  if (known) {
    connection->arrived(m, now());
    return;
  }
  // Its sender waits no longer.
  if (m.kind == Kind::reject)
    for (Past& past : past_)
      std::erase_if(past.calls, [&](const Call& call) {
        return call.source == source && call.request.local_id == m.local_id;
      });
  Message answer;
  answer.transaction = m.transaction;
  answer.local_id = m.remote_id;
  answer.remote_id = m.local_id;
  if (m.kind == Kind::disconnect) {
    // That connection was over here already.
    answer.kind = Kind::disconnected;
    post(port, source, answer);
  } else if (m.kind == Kind::reply) {
    answer.kind = Kind::reject;
    answer.about = About::reply;
    answer.reason = kStale;
    post(port, source, answer);
  }
}

void Manager::refuse_request(Port& port, u32 source, const Message& m, u16 reason, u8 status, u8 mtu) {
  Message answer;
  answer.transaction = m.transaction;
  if (m.kind == Kind::datagram_request) {
    answer.kind = Kind::datagram_reply;
    answer.remote_id = m.remote_id;
    answer.service = m.service;
    answer.status = status;
  } else {
    answer.kind = Kind::reject;
    answer.remote_id = m.local_id;
    answer.reason = reason;
    answer.info_bytes = mtu != 0 ? 1 : 0;
    answer.info[0] = static_cast<u8>(mtu << 4);
  }
  post(port, source, answer);
}

Manager::Past* Manager::past_of(u64 service) {
  const auto at = std::ranges::find(past_, service, &Past::service);
  return at != past_.end() ? &*at : nullptr;
}

void Manager::keep_request(Past& past, Port& port, u32 source, const Message& m) {
  constexpr std::size_t kMost = 1024;
  const auto same = [&](const Call& call) {
    return call.source == source && call.request.kind == m.kind && call.request.transaction == m.transaction;
  };
  if (std::ranges::none_of(past.calls, same)) {
    if (past.calls.size() == kMost) return;
    past.calls.push_back({&port, source, m});
  }
  if (m.kind != Kind::request) return;  // SIDR_REQ has no such answer; its sender sends it again
  Message patience;
  patience.kind = Kind::patience;
  patience.transaction = m.transaction;
  patience.remote_id = m.local_id;
  patience.about = About::request;
  patience.service_timeout = Connection::kServiceTimeout;
  post(port, source, patience);
}

void Manager::answer_kept(const Id& listener) {
  Past* past = past_of(service_of(static_cast<u32>(listener.base.ps), listener.source_port));
  if (past == nullptr) return;
  // One for another device than the listener's is kept again.
  for (const Call& call : std::exchange(past->calls, {})) arrived(*call.port, call.source, call.request);
}

void Manager::end_past(u64 time) {
  for (const Past& past : past_) {
    if (past.until > time) continue;
    for (const Call& call : past.calls)
      refuse_request(*call.port, call.source, call.request, kInvalidServiceId, kNoService, 0);
  }
  std::erase_if(past_, [time](const Past& past) { return past.until <= time; });
}

void Manager::requested(Port& port, u32 source, const Message& m) {
  const auto header = address_header(m.private_data);
  const auto at = std::ranges::find_if(listeners_, [&](const Id* id) {
    return service_of(static_cast<u32>(id->base.ps), id->source_port) == m.service &&
           (id->any || id->port == &port) && id->datagram() == (m.kind == Kind::datagram_request);
  });
  Past* past = past_of(m.service);
  if (header && at == listeners_.end() && past != nullptr) {
    keep_request(*past, port, source, m);
    return;
  }
  if (!header || at == listeners_.end() || m.transport > Transport::uc) {
    refuse_request(port, source, m, header && m.transport > Transport::uc ? kUnsupported : kInvalidServiceId,
                   kNoService, 0);
    return;
  }
  if (m.kind == Kind::request && (m.mtu == 0 || m.mtu > port.mtu)) {
    refuse_request(port, source, m, kInvalidMtu, 0, port.mtu);
    return;
  }
  Id& listener = **at;
  // Sent again later, when the program has taken others.
  if (listener.waiting >= listener.backlog) return;
  auto made = std::make_unique<Id>();
  Id& id = *made;
  Connection& connection = make_connection();
  connection.owner = &id;
  connection.device = static_cast<u32>(
      std::ranges::find_if(ports_, [&port](const auto& one) { return one.get() == &port; }) - ports_.begin());
  connection.peer = source;
  connection.called(m);
  called_[{source, connection.remote_id(), connection.datagram()}] = &connection;
  watch(source);
  adopt(id);
  id.connection = &connection;
  id.state = Id::State::connecting;
  id.listener = &listener;
  id.synchronous = false;
  id.port = &port;
  id.source = port.address;
  id.source_port = listener.source_port;
  id.destination = source;
  id.destination_port = header->port;
  id.ack_timeout = listener.ack_timeout;
  id.remote_queue_pair = m.queue_pair;
  id.remote_psn = m.psn;
  id.retries = m.retries;
  id.rnr_retries = m.rnr_retries;
  id.mtu = m.mtu;
  const auto fits = [](u8 asked, int most) { return static_cast<u8>(std::min<int>(asked, most)); };
  id.responder_resources = fits(m.initiator_depth, port.limits.max_qp_rd_atom);
  id.initiator_depth = fits(m.responder_resources, port.limits.max_qp_init_rd_atom);
  rdma_cm_id& base = id.base;
  base.verbs = port.verbs;
  base.pd = port.domain;
  base.channel = listener.base.channel;
  base.context = listener.base.context;
  base.ps = listener.base.ps;
  base.port_num = 1;
  base.qp_type = m.kind == Kind::datagram_request ? IBV_QPT_UD
                 : m.transport == Transport::uc   ? IBV_QPT_UC
                                                  : IBV_QPT_RC;
  fill_route(id, header->source);
  Event& event = make_event(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  event.base.listen_id = &listener.base;
  if (id.datagram()) {
    rdma_ud_param& ud = event.base.param.ud;
    ud.private_data = keep(event, m, AddressHeader::kBytes, ud.private_data_len);
    ud.ah_attr = way_to(source);
  } else {
    rdma_conn_param& conn = event.base.param.conn;
    conn.private_data = keep(event, m, AddressHeader::kBytes, conn.private_data_len);
    conn.responder_resources = m.initiator_depth;
    conn.initiator_depth = m.responder_resources;
    conn.flow_control = m.flow_control ? 1 : 0;
    conn.retry_count = m.retries;
    conn.rnr_retry_count = m.rnr_retries;
    conn.srq = m.shared_receives ? 1 : 0;
    conn.qp_num = m.queue_pair;
  }
  ++listener.waiting;
  made.release();
  deliver(event);
}

bool Manager::lower_mtu(Id& id, const Message& rejection) {
  const u8 mtu = rejection.info[0] >> 4;
  const auto call = calls_.find(id.connection->local_id());
  if (rejection.info_bytes == 0 || mtu == 0 || mtu >= id.mtu || call == calls_.end()) return false;
  Message again = call->second;
  again.mtu = id.mtu = mtu;
  id.path.mtu = mtu;
  id.connection->owner = nullptr;
  return this->call(id, again) == 0;
}

void Manager::happened(Connection& connection, Happening what, int status, const Message* m) {
  if (connection.owner == nullptr) return;
  Id& id = *static_cast<Id*>(connection.owner);
  switch (what) {
    case Happening::replied: {
      id.remote_queue_pair = m->queue_pair;
      id.remote_psn = m->psn;
      id.rnr_retries = m->rnr_retries;
      id.initiator_depth = std::min(id.initiator_depth, m->responder_resources);
      id.responder_resources = std::min(id.responder_resources, m->initiator_depth);
      rdma_cm_event_type type = RDMA_CM_EVENT_CONNECT_RESPONSE;
      if (id.base.qp != nullptr) {
        if (const int error = to_running(id)) {
          (void)connection.reject(kConsumer, {}, now());
          deliver(make_event(id, RDMA_CM_EVENT_CONNECT_ERROR, -error));
          return;
        }
        (void)connection.ready(now());
        type = RDMA_CM_EVENT_ESTABLISHED;
      }
      Event& event = make_event(id, type, 0);
      rdma_conn_param& conn = event.base.param.conn;
      conn.private_data = keep(event, *m, 0, conn.private_data_len);
      conn.responder_resources = m->initiator_depth;
      conn.initiator_depth = m->responder_resources;
      conn.flow_control = m->flow_control ? 1 : 0;
      conn.rnr_retry_count = m->rnr_retries;
      conn.srq = m->shared_receives ? 1 : 0;
      conn.qp_num = m->queue_pair;
      deliver(event);
      return;
    }
    case Happening::established: {
      Event& event = make_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
      if (connection.datagram() && m != nullptr) {
        rdma_ud_param& ud = event.base.param.ud;
        ud.private_data = keep(event, *m, 0, ud.private_data_len);
        ud.ah_attr = way_to(connection.peer);
        ud.qp_num = m->queue_pair;
        ud.qkey = m->queue_key;
        id.remote_queue_pair = m->queue_pair;
      }
      deliver(event);
      return;
    }
    case Happening::rejected: {
      if (status == kInvalidMtu && connection.active() && lower_mtu(id, *m)) return;
      Event& event = make_event(id, RDMA_CM_EVENT_REJECTED, status);
      rdma_conn_param& conn = event.base.param.conn;
      if (m != nullptr) conn.private_data = keep(event, *m, 0, conn.private_data_len);
      deliver(event);
      return;
    }
    case Happening::unreachable: {
      Event& event = make_event(id, RDMA_CM_EVENT_UNREACHABLE, status);
      if (m != nullptr) {
        rdma_ud_param& ud = event.base.param.ud;
        ud.private_data = keep(event, *m, 0, ud.private_data_len);
      }
      deliver(event);
      return;
    }
    case Happening::disconnected:
      deliver(make_event(id, RDMA_CM_EVENT_DISCONNECTED, 0));
      return;
  }
}

}  // namespace doorbell::cm
