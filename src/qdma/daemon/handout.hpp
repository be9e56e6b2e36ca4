// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The resources that clients hold: queue pairs, buffers in card memory, and transfer descriptors, which are
// sockets of the daemon that speak wire.hpp.
#pragma once

#include <atomic>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "qdma/daemon/accounts.hpp"
#include "qdma/daemon/card_memory.hpp"
#include "qdma/daemon/roles.hpp"
#include "qdma/driver.hpp"
#include "service/fair_queue.hpp"
#include "service/log.hpp"
#include "service/outlet.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

using service::FairQueue;
using service::FairQueueLimits;
using service::ForeignFile;
using service::Lane;
using service::Log;
using service::LogEntry;
using service::Message;
using service::Outlet;
using service::Priority;
using service::SocketId;
using service::Workers;

/// Card memory that is reserved as long as this is held: a buffer, or a transfer into it.
struct MemoryLease {
  MemoryLease(CardMemory* from, const CardRange& what) : memory(from), range(what) {}
  ~MemoryLease() {
    if (memory != nullptr && !kept) memory->release(range);
  }
  MemoryLease(const MemoryLease&) = delete;
  MemoryLease& operator=(const MemoryLease&) = delete;

  CardMemory* memory;  ///< null: a raw buffer, which reserves nothing
  CardRange range;
  bool kept = false;  ///< for ever: a queue pair that could not be deleted may still reach it
};

/// A queue pair as the card knows it.
struct CardQueue {
  u32 id = 0;          ///< the driver's
  u32 directions = 0;  ///< kDirH2C, kDirC2H
};

/// A transfer descriptor of the card.
class CardDescriptor {
 public:
  CardDescriptor(std::shared_ptr<Driver> card, int fd) : card_(std::move(card)), fd_(fd) {}
  ~CardDescriptor() { card_->close(fd_); }
  CardDescriptor(const CardDescriptor&) = delete;
  CardDescriptor& operator=(const CardDescriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  std::shared_ptr<Driver> card_;
  int fd_;
};

/// A transfer that a descriptor's user waits for.
struct PendingTransfer {
  FairQueue::Ticket ticket = 0;
  u64 tag = 0;  ///< for Driver::cancel()
};

/// A host buffer that the card is making.
struct HostBufferCall {
  BufCreate call;
  u64 tag = 0;                         ///< for Driver::cancel()
  std::atomic<bool> cancelled{false};  ///< set before that
  i64 result = -ENOMEM;                ///< of a worker that finds no memory for it
  Descriptor made = {};
  /// The card says by this name when no process has it any more; none: it does not.
  std::optional<wire::HostBufferName> counted_as = {};
};

/// A transfer descriptor that a client holds. Once revoked it answers ESTALE, as long as its socket is open.
struct Handout {
  SocketId socket = 0;
  SocketId owner = 0;  ///< the connection
  uid_t user = 0;
  std::shared_ptr<const CardDescriptor> fd;
  std::vector<CardQueue> queues;
  std::vector<u32> queue_pairs;     ///< the ids that the client knows; none for a buffer's
  u32 directions = 0;               ///< that it allows
  std::optional<CardRange> window;  ///< that it reaches; none: all that its owner may reach
  bool owned_only = false;          ///< only card memory of its owner's buffers
  std::shared_ptr<const MemoryLease> lease;
  Accounts::Charge charge;
  std::vector<Accounts::Charge> host_buffers;  ///< whose end the card does not report
  std::map<u64, PendingTransfer> pending;      ///< by sequence
  std::vector<std::shared_ptr<HostBufferCall>> making = {};
  u32 running = 0;  ///< transfers that workers have in hand
  bool revoked = false;
  bool open = true;  ///< its socket
};

struct HeldQueuePair {
  CardQueue queue;
  u32 aperture = 0;
  SocketId owner = 0;
  Accounts::Charge charge;
  std::vector<std::shared_ptr<Handout>> handouts = {};
};

struct HeldBuffer {
  CardRange range;
  u64 size = 0;  ///< as its reply has said
  bool raw = false;
  u32 directions = 0;
  SocketId owner = 0;
  std::vector<CardQueue> queues = {};
  std::shared_ptr<Handout> handout = {};
  std::shared_ptr<MemoryLease> lease = {};
  Accounts::Charge charge = {};
};

/// A client.
struct Connection {
  SocketId id = 0;
  Peer peer;
  u32 rights = 0;
  bool hello = false;
  bool busy = false;  ///< a request is being carried out
  bool gone = false;
  u64 first_request_by_ns = 0;  ///< by wall_ns(); 0: it has come
  bool overdue = false;         ///< it had not come by then; the next look decides
  Accounts::Charge charge;
  std::vector<u32> queue_pairs = {};
  std::vector<std::shared_ptr<HeldBuffer>> buffers = {};
  std::vector<Accounts::Charge> host_buffers = {};  ///< whose end the card does not report
  std::shared_ptr<HostBufferCall> making = {};      ///< the request that is being carried out, if it is that
};

/// A call of the card that has failed, for the client.
[[nodiscard]] std::string refused_by_card(std::string_view what, i64 rc);
/// Whose turn a call of theirs takes.
[[nodiscard]] inline service::Caller caller_of(const Handout& h) {
  return {h.user, h.owner};
}
[[nodiscard]] inline service::Caller caller_of(const Connection& c) {
  return {c.peer.uid, c.id};
}

}  // namespace doorbell::qdma::daemon
