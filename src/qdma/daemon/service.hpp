// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part of the daemon that handles messages: it checks them, has the card called, keeps who holds what,
// cleans up. It opens no socket and starts no thread: Outlet and Workers are others'.
//
// Thread rule: one thread, the loop's. Calls of the card block and run on Workers.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qdma/daemon/handout.hpp"
#include "qdma/daemon/id_table.hpp"
#include "qdma/daemon/metrics.hpp"
#include "qdma/daemon/protocol.hpp"
#include "qdma/daemon/roles.hpp"
#include "qdma/driver.hpp"

namespace doorbell::qdma::daemon {

struct ServiceOptions {
  Quotas quotas = {};
  FairQueueLimits limits = {};
  u32 max_connections = 256;             ///< of all users; an eighth only for those with rights of their own
  u32 ring_index = 15;                   ///< of the queue pairs of buffers
  u32 max_revoked = 256;                 ///< revoked descriptors that stay open to say so
  u64 max_transfer_ns = 10'000'000'000;  ///< the longest deadline of a transfer
  /// How long a client may be connected before its first request.
  u64 first_request_ns = 10'000'000'000;
};

class Service {
 public:
  /// Asks the card what it is. Throws Error.
  Service(std::shared_ptr<Driver> card, const ServiceOptions& options, Roles roles, Outlet& outlet,
          Workers& workers, Log& log);
  ~Service();

  /// A number for a socket.
  [[nodiscard]] SocketId next_socket() { return next_socket_++; }
  /// A client. 0, or the errno with which it is to be refused.
  [[nodiscard]] int connect(SocketId id, Peer peer);
  /// A connection could not be accepted, or its peer not be read.
  void count_refused(std::string_view reason) { ++metrics_.refused_connections[reason]; }
  /// A message of a client or of a transfer descriptor. Not while the socket is paused.
  void message(SocketId id, Message m);
  /// The other end has gone.
  void closed(SocketId id);
  /// Disconnects clients that have sent no request in time; messages that are none do not count. Returns when
  /// to look again, 0 if there is no such client. A client goes at the second look beyond its time: between
  /// the two, messages that have come are taken. `now_ns` and what is returned are times of wall_ns().
  [[nodiscard]] u64 end_silent(u64 now_ns);
  /// Finds out which host buffers have gone; to be called now and then.
  void look_at_host_buffers();
  /// For all requests from now on. What has been handed out stays.
  void set_roles(Roles roles);
  /// `gone` is called once, by the loop's thread and in the middle of a call, when the card is found to have
  /// gone.
  void on_card_gone(std::function<void()> gone) { card_gone_ = std::move(gone); }
  /// Another one, which says that it is `info`, in place of a card that has gone; not before idle().
  void set_card(std::shared_ptr<Driver> card, const Info& info);
  /// Disconnects all clients; the card is idle when idle() is true.
  void close_all();
  [[nodiscard]] bool idle() const;

  [[nodiscard]] const Metrics& metrics() const { return metrics_; }
  [[nodiscard]] Gauges gauges() const;
  [[nodiscard]] const Info& info() const { return info_; }

 private:
  /// A request that is being answered, while the message itself has gone.
  struct Asked {
    SocketId connection;
    Opcode opcode;
    u32 sequence;
  };
  using Outcome = std::function<void(i64 result)>;
  /// How the end of a queue pair is reported.
  struct Retirement;

  // Requests of clients: requests.cpp.
  void request(Connection& c, Message m);
  void dispatch(Connection& c, const Request& r);
  [[nodiscard]] bool may(Connection& c, const Request& r);
  void say_hello(Connection& c, const Asked& a, const Hello& h);
  void send_device_info(Connection& c, const Asked& a);
  void find_device(Connection& c, const Asked& a, const BdfRequest& r);
  void add_queue_pair(Connection& c, const Asked& a, QpairAdd add);
  void operate_queue_pair(Connection& c, const Asked& a, const QueuePairRequest& r);
  void get_descriptor(Connection& c, const Asked& a, const DescriptorRequest& r);
  void open_buffer(Connection& c, const Asked& a, const BufferOpenRequest& r);
  void open_raw(Connection& c, const Asked& a, const BufferOpenRawRequest& r);
  void open_on_card(Connection& c, const Asked& a, std::shared_ptr<HeldBuffer> buffer, u32 channel);
  void close_buffer(Connection& c, const Asked& a, const BufferCloseRequest& r);
  void find_holder(Connection& c, const Asked& a, const HolderRequest& r);
  void create_host_buffer(Connection& c, const Asked& a, BufCreate create);
  /// 0, or the errno for an id that is not this client's.
  [[nodiscard]] int look_up(Connection& c, u32 id, HeldQueuePair*& found);

  // Requests on transfer descriptors: descriptors.cpp.
  void descriptor_message(const std::shared_ptr<Handout>& h, Message m);
  void transfer(const std::shared_ptr<Handout>& h, u64 sequence, u64 deadline_ns,
                std::span<const u8> structure, std::vector<ForeignFile> buffers);
  void create_buffer_on(const std::shared_ptr<Handout>& h, u64 sequence, std::span<const u8> structure);
  void cancel(const std::shared_ptr<Handout>& h, u64 sequence, std::span<const u8> structure);
  void answer(const std::shared_ptr<Handout>& h, u64 sequence, i64 result, std::span<const u8> structure = {},
              std::span<const SubResult> parts = {}, Descriptor with = {});
  /// The lease that reserves the memory of one sub-transfer; null with an errno if it may not reach there.
  [[nodiscard]] std::shared_ptr<const MemoryLease> reach(const Handout& h, const SubXfer& x, int& error);

  // Host buffers that users have: host_buffers.cpp.
  [[nodiscard]] std::shared_ptr<HostBufferCall> new_host_buffer(const BufCreate& create);
  /// Has it made by the card, on the control node or a descriptor.
  static void make(Driver& card, int fd, HostBufferCall& call);
  /// Nobody waits for it any more.
  void cancel_making(int fd, HostBufferCall& call);
  /// `then` gets a charge for it, or null and why; perhaps after the card has been asked which buffers are
  /// gone.
  void charge_host_buffer(service::Caller caller, u64 bytes,
                          std::function<void(Accounts::Charge, std::string over)> then);
  /// Counts it for its user until no process has it. False if the driver does not report that.
  [[nodiscard]] bool keep_host_buffer(const HostBufferCall& made, Accounts::Charge charge);
  /// Asks the card which of the buffers are gone; `then` is called when it has answered.
  void sweep_host_buffers(service::Caller caller, std::function<void()> then);
  void make_buffer_on(const std::shared_ptr<Handout>& h, u64 sequence, const BufCreate& create,
                      Accounts::Charge charge);
  /// With an error.
  void answer_making(const std::shared_ptr<Handout>& h, u64 sequence, i64 result);

  // Resources that clients hold: service.cpp.
  void ok(const Asked& a, std::span<const u8> body, Descriptor with = {});
  void refuse(const Asked& a, int error, const std::string& why);
  /// The request goes on with a call of the card; `done` has its result.
  void call_card(const Asked& a, std::function<i64()> work, Outcome done, Lane lane = Lane::control);
  /// A request of it is carried out, and the next one is not taken before its end.
  void begin(Connection& c);
  void end(SocketId connection);
  /// A transfer descriptor's socket, known from now on; empty with an errno.
  [[nodiscard]] Descriptor hand_out(const std::shared_ptr<Handout>& h, int& error);
  void revoke(const std::shared_ptr<Handout>& h);
  /// Its queue pairs know it no longer, once its socket and its transfers have gone.
  void forget(const std::shared_ptr<Handout>& h);
  /// A call of it has ended: what waited for that goes on.
  void settle(const std::shared_ptr<Handout>& h);
  void retire(Retirement what);
  void stopped(std::shared_ptr<Retirement> what);
  void try_deleting();
  void clean_up(Connection& c);
  void retire_buffer(std::shared_ptr<HeldBuffer> buffer, Outcome then = {});
  /// Takes it out of the table: its id is stale from now on.
  void retire_queue_pair(u32 id, Outcome then = {});
  void note(Priority p, const Connection& c, std::string text,
            std::vector<std::pair<std::string, std::string>> fields = {});

  /// A call has ended with it: is it that the card has gone?
  void look_at(i64 result);

  std::shared_ptr<Driver> card_;
  std::function<void()> card_gone_;
  bool looking_ = false;  // whether the card is there
  ServiceOptions options_;
  Roles roles_;
  u32 everybodys_rights_;
  Outlet& outlet_;
  Log& log_;
  Info info_;
  Metrics metrics_;
  Accounts accounts_;
  CardMemory memory_;
  SocketId next_socket_ = 1;
  u64 next_tag_ = 1;
  std::map<SocketId, Connection> connections_;
  std::map<SocketId, std::shared_ptr<Handout>> handouts_;
  std::vector<SocketId> revoked_;  // oldest first
  IdTable<HeldQueuePair> queue_pairs_;
  std::vector<std::shared_ptr<Retirement>> deleting_;  // stopped; they wait for their transfers
  u64 retiring_ = 0;
  /// Host buffers that some process has, each with its user's charge.
  std::map<wire::HostBufferName, Accounts::Charge> host_buffers_;
  bool sweeping_ = false;
  FairQueue queue_;  // last: its calls hold what is above
};

}  // namespace doorbell::qdma::daemon
