// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The process's end of communication management: queue pair 1 of each device, the connections, who listens,
// and the thread that receives messages and minds the timers.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "rdma/dropin/cm/objects.hpp"
#include "system/running_time.hpp"

namespace doorbell::cm {

/// A device of this process.
struct Port {
  u32 index = 0;
  ibv_context* verbs = nullptr;
  ibv_pd* domain = nullptr;  ///< of programs that bring none
  u32 address = 0;
  u8 mtu = 0;  ///< code
  ibv_device_attr limits{};
  // From start() on.
  ibv_comp_channel* channel = nullptr;
  ibv_cq *sends = nullptr, *receives = nullptr;
  ibv_qp* queue = nullptr;
  ibv_mr* region = nullptr;
  std::vector<u8> buffers;
  std::map<u32, ibv_ah*> handles;
  Descriptor announced;
};

class Manager final : public Surroundings {
 public:
  /// This process's; a child of fork() has one of its own. Never destroyed.
  static Manager& get();
  /// Whether get() has been called in this process, for its end.
  static Manager* existing();

  std::mutex mutex;  ///< of all below, and of the ids
  std::condition_variable acknowledged;

  /// All devices of the process, opened. Empty with errno.
  std::vector<std::unique_ptr<Port>>& ports();
  [[nodiscard]] Port* port_at(u32 address);
  /// Queue pair 1 and the thread; errno value.
  int start(Port& port);

  /// A number that no id of the process has. 0: none is free.
  u16 free_port(u32 port_space);
  [[nodiscard]] bool port_taken(u32 port_space, u16 port, const Id& but);

  int listen(Id& id, int backlog);
  /// The name of a port, or of one that this process has listened at just now.
  Descriptor claim(u32 port_space, u16 port);
  [[nodiscard]] bool listens(u32 port_space, u16 port) const;
  /// REQ or SIDR_REQ by the id; errno value.
  int call(Id& id, const Message& request);
  /// The same, once somebody of this host listens at the port; refused if that takes long.
  int call_when_found(Id& id, const Message& request);
  [[nodiscard]] u64 now() { return running_.look(clock_ns()); }
  void wake();

  /// An event of the id, to be filled; and into the id's channel with it.
  Event& make_event(Id& id, rdma_cm_event_type type, int status);
  void deliver(Event& event) { of(event.base.id->channel).events.push(&event); }
  /// A new id's members that all ids have.
  void adopt(Id& id);
  void forget(Id& id);

  void send(Connection& connection, const Message& message) override;
  void happened(Connection& connection, Happening what, int status, const Message* message) override;

  /// Says to all peers what they would wait for.
  void at_exit();

 private:
  struct Past;

  Manager();
  static u64 clock_ns();
  void run();
  void receive(Port& port);
  void arrived(Port& port, u32 source, const Message& message);
  void requested(Port& port, u32 source, const Message& message);
  [[nodiscard]] Past* past_of(u64 service);
  void keep_request(Past& past, Port& port, u32 source, const Message& message);
  void answer_kept(const Id& listener);
  void end_past(u64 time);
  void refuse_request(Port& port, u32 source, const Message& message, u16 reason, u8 status, u8 mtu);
  void post(Port& port, u32 to, const Message& message);
  void watch(u32 peer);
  void search(std::unique_lock<std::mutex>& lock);
  Connection& make_connection();
  bool lower_mtu(Id& id, const Message& rejection);
  void stop_listening(Id& id);
  void abandon();

  bool opened_ = false, running_thread_ = false;
  std::vector<std::unique_ptr<Port>> ports_;
  RunningTime running_;
  Descriptor wake_;
  u32 next_id_;
  u64 next_transaction_;
  std::map<u32, std::unique_ptr<Connection>> connections_;    ///< by the local ID
  std::map<std::tuple<u32, u32, bool>, Connection*> called_;  ///< by peer, its ID, datagrams
  std::set<Id*> ids_;
  std::vector<Id*> listeners_;
  /// Programs (perftest) end a listener, sleep for a second, and listen again: who calls in between is asked
  /// for patience, and refused only when nobody has listened for a while.
  struct Call {
    Port* port;
    u32 source;
    Message request;
  };
  struct Past {
    u64 service;
    Descriptor claim;
    u64 until = 0;
    std::vector<Call> calls = {};
  };
  std::vector<Past> past_;
  struct Search {
    Message request;
    u64 since;
  };
  std::map<Id*, Search> searches_;
  std::map<u32, Descriptor> watches_;  ///< by peer
  std::vector<Descriptor> watchers_;
  std::map<u32, Message> calls_;  ///< REQs by the local ID, to be made anew
};

}  // namespace doorbell::cm
