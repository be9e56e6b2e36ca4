// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Connections as programs make and end them.
#include <algorithm>
#include <cstring>

#include "rdma/dropin/cm/manager.hpp"

using namespace doorbell::cm;
using doorbell::u16;
using doorbell::u32;
using doorbell::u64;
using doorbell::u8;

namespace doorbell::cm {

void set_destination(Id& id, u32 address, Message& request) {
  id.destination = address;
  id.base.route.ib.dgid = id.path.dgid = gid_of(address);
  put(AddressHeader{.port = id.source_port, .source = id.source, .destination = address},
      request.private_data);
  const ibv_gid peer = gid_of(address);
  std::memcpy(request.remote_gid.data(), peer.raw, sizeof peer.raw);
}

}  // namespace doorbell::cm

namespace {

/// How long peers are told to wait for messages, and how often to try: codes of 4.096 us << code.
constexpr u8 kMessageTimeout = 18, kMessageTries = 15;
constexpr u8 kAckTimeout = 18;

/// Values for those that a program leaves out.
constexpr rdma_conn_param kUsual{.private_data = nullptr,
                                 .private_data_len = 0,
                                 .responder_resources = RDMA_MAX_RESP_RES,
                                 .initiator_depth = RDMA_MAX_INIT_DEPTH,
                                 .flow_control = 1,
                                 .retry_count = 7,
                                 .rnr_retry_count = 7,
                                 .srq = 0,
                                 .qp_num = 0};

std::span<const u8> data_of(const void* data, std::size_t bytes) {
  return data == nullptr ? std::span<const u8>() : std::span(static_cast<const u8*>(data), bytes);
}

/// READs at a time, as asked; 255 means as many as there are. False where the device has not so many.
bool take_depth(u8 asked, int most, u8 all, u8& into) {
  if (asked == RDMA_MAX_INIT_DEPTH) {
    into = std::min(all, static_cast<u8>(most));
    return true;
  }
  into = asked;
  return asked <= most;
}

bool has_shared_receives(const Id& id, const rdma_conn_param& param) {
  return id.base.qp != nullptr ? id.base.qp->srq != nullptr : param.srq != 0;
}

/// REQ or SIDR_REQ; errno value.
int fill_request(Id& id, const rdma_conn_param& param, Message& request) {
  const bool datagram = id.datagram();
  request.kind = datagram ? Kind::datagram_request : Kind::request;
  if (param.private_data_len > private_bytes(request.kind) - AddressHeader::kBytes) return EINVAL;
  put(AddressHeader{.port = id.source_port, .source = id.source, .destination = id.destination},
      request.private_data);
  if (param.private_data != nullptr)
    std::memcpy(request.private_data.data() + AddressHeader::kBytes, param.private_data,
                param.private_data_len);
  request.service = service_of(static_cast<u32>(id.base.ps), id.destination_port);
  if (datagram) return 0;
  const ibv_device_attr& limits = id.port->limits;
  if (!take_depth(param.responder_resources, limits.max_qp_rd_atom, static_cast<u8>(limits.max_qp_rd_atom),
                  id.responder_resources) ||
      !take_depth(param.initiator_depth, limits.max_qp_init_rd_atom,
                  static_cast<u8>(limits.max_qp_init_rd_atom), id.initiator_depth))
    return EINVAL;
  id.retries = param.retry_count & 7;
  id.rnr_retries = param.rnr_retry_count & 7;
  id.mtu = id.port->mtu;
  request.guid = be64toh(limits.node_guid);
  request.queue_pair = id.local_queue_pair;
  request.responder_resources = id.responder_resources;
  request.initiator_depth = id.initiator_depth;
  request.remote_timeout = request.local_timeout = kMessageTimeout;
  request.message_retries = kMessageTries;
  request.transport = id.base.qp_type == IBV_QPT_UC ? Transport::uc : Transport::rc;
  request.flow_control = param.flow_control != 0;
  request.psn = id.psn;
  request.retries = id.retries;
  request.rnr_retries = id.rnr_retries;
  request.mtu = id.mtu;
  request.shared_receives = has_shared_receives(id, param);
  const ibv_gid own = gid_of(id.source), peer = gid_of(id.destination);
  std::memcpy(request.local_gid.data(), own.raw, sizeof own.raw);
  std::memcpy(request.remote_gid.data(), peer.raw, sizeof peer.raw);
  request.rate = IBV_RATE_100_GBPS;
  request.ack_timeout = id.ack_timeout != 0 ? id.ack_timeout : kAckTimeout;
  return 0;
}

int fill_reply(Id& id, const rdma_conn_param& param, Message& reply) {
  if (id.datagram()) {
    if (param.private_data_len > private_bytes(Kind::datagram_reply)) return EINVAL;
    reply.kind = Kind::datagram_reply;
    reply.status = kDatagramOk;
    reply.queue_pair = id.local_queue_pair;
    reply.queue_key = RDMA_UDP_QKEY;
    reply.service = service_of(static_cast<u32>(id.base.ps), id.source_port);
  } else {
    const ibv_device_attr& limits = id.port->limits;
    if (param.private_data_len > private_bytes(Kind::reply) ||
        !take_depth(param.responder_resources, limits.max_qp_rd_atom, id.responder_resources,
                    id.responder_resources) ||
        !take_depth(param.initiator_depth, limits.max_qp_init_rd_atom, id.initiator_depth,
                    id.initiator_depth))
      return EINVAL;
    reply.kind = Kind::reply;
    reply.queue_pair = id.local_queue_pair;
    reply.psn = id.psn;
    reply.responder_resources = id.responder_resources;
    reply.initiator_depth = id.initiator_depth;
    reply.flow_control = param.flow_control != 0;
    reply.rnr_retries = param.rnr_retry_count & 7;
    reply.shared_receives = has_shared_receives(id, param);
    reply.guid = be64toh(limits.node_guid);
  }
  set_private(reply, data_of(param.private_data, param.private_data_len));
  return 0;
}

u32 queue_pair_of(const Id& id, const rdma_conn_param& param) {
  return id.base.qp != nullptr ? id.base.qp->qp_num : param.qp_num;
}

/// With the manager's mutex: the active end is ready.
int make_ready(Id& id) {
  if (id.connection == nullptr || id.connection->state() != Connection::State::answered) return EINVAL;
  if (id.base.qp != nullptr)
    if (const int error = to_running(id)) return error;
  (void)id.connection->ready(id.manager->now());
  return 0;
}

}  // namespace

DOORBELL_CM int rdma_connect(rdma_cm_id* base, rdma_conn_param* given) {
  Id& id = of(base);
  rdma_conn_param param = given != nullptr ? *given : kUsual;
  if (given == nullptr && !id.connect_data.empty()) {
    param.private_data = id.connect_data.data();
    param.private_data_len = static_cast<u8>(id.connect_data.size());
  }
  // Its process may listen since.
  const u32 found = id.state == Id::State::routed && id.destination == 0 ? find_destination(id) : 0;
  {
    const std::lock_guard lock(id.manager->mutex);
    if (id.state != Id::State::routed) return refuse(EINVAL);
    id.local_queue_pair = queue_pair_of(id, param);
    Message request;
    if (const int error = fill_request(id, param, request)) return refuse(error);
    if (id.destination == 0) set_destination(id, found, request);
    const int error =
        id.destination != 0 ? id.manager->call(id, request) : id.manager->call_when_found(id, request);
    if (error != 0) return refuse(error);
    id.state = Id::State::connecting;
  }
  return complete(id);
}

DOORBELL_CM int rdma_accept(rdma_cm_id* base, rdma_conn_param* given) {
  Id& id = of(base);
  const rdma_conn_param& param = given != nullptr ? *given : kUsual;
  {
    const std::lock_guard lock(id.manager->mutex);
    if (id.connection == nullptr) return refuse(EINVAL);
    if (id.connection->active()) {
      if (const int error = make_ready(id)) return refuse(error);
      return 0;
    }
    if (id.connection->state() != Connection::State::called) return refuse(EINVAL);
    id.local_queue_pair = queue_pair_of(id, param);
    Message reply;
    if (const int error = fill_reply(id, param, reply)) return refuse(error);
    if (base->qp != nullptr && !id.datagram())
      if (const int error = to_running(id)) return refuse(error);
    (void)id.connection->accept(reply, id.manager->now());
    id.manager->wake();
  }
  // Nothing comes back for datagrams.
  return id.datagram() ? 0 : complete(id);
}

DOORBELL_CM int rdma_establish(rdma_cm_id* base) {
  Id& id = of(base);
  const std::lock_guard lock(id.manager->mutex);
  // With a queue pair of its own the id is established by the library.
  if (base->qp != nullptr) return refuse(EINVAL);
  if (const int error = make_ready(id)) return refuse(error);
  return 0;
}

DOORBELL_CM int rdma_reject(rdma_cm_id* base, const void* data, u8 bytes) {
  Id& id = of(base);
  const std::lock_guard lock(id.manager->mutex);
  if (bytes > private_bytes(id.datagram() ? Kind::datagram_reply : Kind::reject)) return refuse(EINVAL);
  if (id.connection == nullptr || !id.connection->reject(kConsumer, data_of(data, bytes), id.manager->now()))
    return refuse(EINVAL);
  return 0;
}

DOORBELL_CM int rdma_notify(rdma_cm_id* base, ibv_event_type event) {
  Id& id = of(base);
  const std::lock_guard lock(id.manager->mutex);
  if (event != IBV_EVENT_COMM_EST || id.connection == nullptr) return refuse(EINVAL);
  if (id.connection->state() == Connection::State::established || id.connection->established_by_data())
    return 0;
  return refuse(EINVAL);
}

DOORBELL_CM int rdma_disconnect(rdma_cm_id* base) {
  Id& id = of(base);
  {
    const std::lock_guard lock(id.manager->mutex);
    if (id.connection == nullptr || id.datagram()) return refuse(EINVAL);
    using State = Connection::State;
    const State state = id.connection->state();
    if (state != State::established && state != State::accepting && state != State::leaving &&
        state != State::closed && state != State::forgotten)
      return refuse(EINVAL);
    if (base->qp != nullptr) {
      ibv_qp_attr to{};
      to.qp_state = IBV_QPS_ERR;
      (void)::ibv_modify_qp(base->qp, &to, IBV_QP_STATE);
    }
    (void)id.connection->disconnect(id.manager->now());
    id.manager->wake();
    if (id.over) return 0;
  }
  return complete(id);
}
