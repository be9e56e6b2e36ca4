// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects of the drop-in librdmacm. Each begins with the structure that programs see, so that a pointer
// to one is a pointer to the other.
#pragma once

#include <atomic>
#include <vector>

#include "rdma/dropin/cm/cm_abi.hpp"
#include "rdma/dropin/cm/connection.hpp"
#include "rdma/dropin/cm/directory.hpp"
#include "rdma/dropin/event_queue.hpp"

namespace doorbell::cm {

class Manager;
struct Port;
struct Id;

struct Event {
  rdma_cm_event base{};
  std::array<u8, 224> private_data{};
};

struct Channel {
  rdma_event_channel base{};
  dropin::EventQueue<Event*> events;
};

struct Id {
  rdma_cm_id base{};
  enum class State : u8 { idle, bound, addressed, routed, listening, connecting } state = State::idle;
  Manager* manager = nullptr;
  Port* port = nullptr;
  bool synchronous = false;
  bool own_channel = false;
  bool any = false;     ///< bound to all addresses of the host
  bool over = false;    ///< the program has seen DISCONNECTED
  bool reuse = false;   ///< RDMA_OPTION_ID_REUSEADDR
  u32 source = 0;       ///< the device's address; 0: none yet
  u32 destination = 0;  ///< the device that is called, which the program may know by another address
  u16 source_port = 0, destination_port = 0;
  Descriptor claim;
  Id* listener = nullptr;  ///< of an id that a request made
  int backlog = 0, waiting = 0;
  Connection* connection = nullptr;  ///< the manager's
  ibv_sa_path_rec path{};
  u8 ack_timeout = 0;  ///< what the program set; 0: none
  // Of the connection, for the queue pair.
  u32 remote_queue_pair = 0, remote_psn = 0, psn = 0, local_queue_pair = 0;
  u8 responder_resources = 0, initiator_depth = 0, retries = 7, rnr_retries = 7, mtu = 0;
  bool shared_receives = false;
  bool owns_send_queue = false, owns_receive_queue = false, has_init = false;
  ibv_qp_init_attr init{};  ///< of rdma_create_ep, for the queue pairs of its requests
  ibv_pd* init_domain = nullptr;
  std::vector<u8> connect_data;
  std::atomic<u32> events_taken{0};
  u32 events_acknowledged = 0;  ///< under the manager's mutex

  [[nodiscard]] bool datagram() const { return base.ps == RDMA_PS_UDP || base.ps == RDMA_PS_IPOIB; }
};

[[nodiscard]] inline Id& of(rdma_cm_id* base) {
  return *reinterpret_cast<Id*>(base);
}
[[nodiscard]] inline Channel& of(rdma_event_channel* base) {
  return *reinterpret_cast<Channel*>(base);
}

/// How calls refuse: -1 with errno.
inline int refuse(int error) {
  errno = error;
  return -1;
}

/// An address as programs give it. False for a family that devices do not have.
struct Address {
  u32 ip = 0;
  u16 port = 0;
};
[[nodiscard]] bool read_address(const sockaddr* from, Address& into);
void write_address(rdma_end& into, u32 ip, u16 port);
[[nodiscard]] ibv_gid gid_of(u32 address);
[[nodiscard]] u32 address_of(const ibv_gid& gid);

/// ids.cpp: what programs read of the way between the id's source and destination. `shown`: the peer's
/// address as the program knows it.
void fill_route(Id& id, u32 shown);
/// The device that is called, in the id and in its REQ or SIDR_REQ.
void set_destination(Id& id, u32 address, Message& request);
/// The device behind the address that the id calls; 0: nobody listens there. Without the manager's mutex.
[[nodiscard]] u32 find_destination(Id& id);

// queue_pairs.cpp
/// The next state of the id's queue pair; errno value.
[[nodiscard]] int attributes_for(Id& id, ibv_qp_state state, ibv_qp_attr& into, int& mask);
[[nodiscard]] int to_running(Id& id);

// endpoints.cpp
/// Waits for the event of a call where the program asked for synchronous ones.
[[nodiscard]] int complete(Id& id);

}  // namespace doorbell::cm
