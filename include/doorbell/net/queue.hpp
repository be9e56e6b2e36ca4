// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Packets in bursts, the same for raw frames, datagrams, messages and TCP records: what a poller takes from a
// receive queue and gives back as a whole, and what it hands to a send queue as a whole.
//
// Thread rule: a queue belongs to one thread at a time. One indirect call is made a burst, none a packet.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <vector>

namespace doorbell::net {

/// The counts of received packets: each packet counts in one class.
/// received = unique + duplicate + corrupt + misplaced + alien + `short_`.
struct ReceiveCounts {
  u64 received = 0;       ///< all
  u64 unique = 0;         ///< good packets, each once
  u64 duplicate = 0;      ///< a good packet that had come already
  u64 corrupt = 0;        ///< a CRC or the data did not match; such a packet counts as lost too
  u64 misplaced = 0;      ///< a good packet of another flow, or with a sequence that the flow cannot have
  u64 alien = 0;          ///< not of this run
  u64 short_ = 0;         ///< fewer or more bytes than its header says
  u64 late = 0;           ///< unique, but longer on its way than allowed
  u64 held = 0;           ///< late because the receiving thread did not run, or was busy all the time
  u64 earlier = 0;        ///< unique, of a phase before the one in which they came
  u64 earlier_bytes = 0;  ///< payload of these
  u64 out_of_order = 0;   ///< unique, but behind a newer one
  u64 unique_bytes = 0;   ///< payload of the unique packets
  u64 checked = 0;        ///< unique packets whose data was checked
  u64 checked_bytes = 0;  ///< data of these
  u64 polls = 0;          ///< calls of RxQueue::receive()
  u64 empty_polls = 0;    ///< those that took nothing
  u64 bursts = 0;         ///< those that took something

  /// The sum that `received` must be.
  [[nodiscard]] u64 classified() const { return unique + duplicate + corrupt + misplaced + alien + short_; }
  /// Adds each: several queues, or phases, together.
  inline ReceiveCounts& operator+=(const ReceiveCounts& other);
  /// Takes each away: what has come since `other` was kept.
  inline ReceiveCounts& operator-=(const ReceiveCounts& other);
};

/// One of the counts, by its name in messages. (nvcc writes a pointer to a member in a form that GCC warns
/// about, unless it has a name of its own.)
using ReceiveCountOf = u64 ReceiveCounts::*;
/// A count and its name in messages.
struct ReceiveCount {
  const char* key;       ///< as in JSON
  ReceiveCountOf count;  ///< the member
};
/// All counts, in the order in which messages have them.
inline constexpr ReceiveCount kReceiveCounts[] = {{"received", &ReceiveCounts::received},
                                                  {"unique", &ReceiveCounts::unique},
                                                  {"duplicate", &ReceiveCounts::duplicate},
                                                  {"corrupt", &ReceiveCounts::corrupt},
                                                  {"misplaced", &ReceiveCounts::misplaced},
                                                  {"alien", &ReceiveCounts::alien},
                                                  {"short", &ReceiveCounts::short_},
                                                  {"late", &ReceiveCounts::late},
                                                  {"held", &ReceiveCounts::held},
                                                  {"earlier", &ReceiveCounts::earlier},
                                                  {"earlier_bytes", &ReceiveCounts::earlier_bytes},
                                                  {"out_of_order", &ReceiveCounts::out_of_order},
                                                  {"unique_bytes", &ReceiveCounts::unique_bytes},
                                                  {"checked", &ReceiveCounts::checked},
                                                  {"checked_bytes", &ReceiveCounts::checked_bytes},
                                                  {"polls", &ReceiveCounts::polls},
                                                  {"empty_polls", &ReceiveCounts::empty_polls},
                                                  {"bursts", &ReceiveCounts::bursts}};

ReceiveCounts& ReceiveCounts::operator+=(const ReceiveCounts& o) {
  for (const ReceiveCount& c : kReceiveCounts) this->*c.count += o.*c.count;
  return *this;
}
ReceiveCounts& ReceiveCounts::operator-=(const ReceiveCounts& o) {
  for (const ReceiveCount& c : kReceiveCounts) this->*c.count -= o.*c.count;
  return *this;
}

/// Up to `capacity()` received packets, as arrays. Filled by a receive queue, which owns the bytes until
/// release().
class Burst {
 public:
  /// Room for so many packets; StreamRequest::burst is what one receive() may return.
  explicit Burst(u32 capacity)
      : data(capacity), length(capacity), body(capacity), body_length(capacity), token(capacity) {}
  /// Packets that it has room for.
  [[nodiscard]] u32 capacity() const { return static_cast<u32>(data.size()); }

  u32 count = 0;       ///< packets in it: entries 0 .. count - 1 of the arrays
  u16 queue = 0;       ///< of the receive queue
  bool split = false;  ///< body and body_length are used: the payload lies in two places
  u64 rx_time_ns = 0;  ///< CLOCK_MONOTONIC when the burst was taken; 0: the queue does not say
  /// The payload of packet i, behind all protocol headers: its first byte in host memory.
  std::vector<u8*> data;
  std::vector<u32> length;  ///< bytes there
  /// With `split`: the rest of the payload, which may be GPU memory.
  std::vector<u8*> body;
  std::vector<u32> body_length;  ///< bytes there
  /// The queue's own mark of each packet.
  std::vector<u64> token;
};

/// Packets that a receive queue's device, kernel or ring has dropped since the queue was opened, by layer.
struct Drops {
  u64 socket = 0;  ///< no room in a socket's buffer
  /// A kernel counts a coalesced datagram once: with `socket` counted so, the most packets that these can be;
  /// else 0.
  u64 socket_most = 0;
  u64 ring = 0;         ///< no free descriptor or block in a receive ring
  u64 interface = 0;    ///< an interface's own counters, which other layers do not have
  u64 queue = 0;        ///< the queueing discipline of a sending interface
  u64 application = 0;  ///< no free buffer in this program
  u64 relay = 0;        ///< dropped on purpose
  /// Packets, all layers together.
  [[nodiscard]] u64 sum() const { return socket + ring + interface + queue + application + relay; }
  /// Decides how many packets the coalesced datagrams were, when `rest` were lost for no other reason.
  void settle(u64 rest) {
    if (socket_most > socket) socket = rest < socket ? socket : rest > socket_most ? socket_most : rest;
    socket_most = 0;
  }
  /// Adds each.
  Drops& operator+=(const Drops& o) {
    socket += o.socket, socket_most += o.socket_most, ring += o.ring, interface += o.interface,
        queue += o.queue, application += o.application, relay += o.relay;
    return *this;
  }
};

/// A receive queue of any stream. StreamQueues makes them.
class RxQueue {
 public:
  virtual ~RxQueue() = default;
  /// Takes what has arrived, at most burst.capacity() packets. Never blocks; returns burst.count. A second
  /// burst may be taken before the first is released; a queue that has only one then gives no packets.
  virtual u32 receive(Burst& burst) = 0;
  /// Gives the packets of a burst back. Bursts are released in the order of their arrival.
  virtual void release(Burst& burst) = 0;
  /// Blocks until something may have arrived, at most `limit_ns`. For machines with fewer cores than threads.
  virtual void wait(u64 limit_ns) = 0;
  /// True when nothing more can arrive: the sender has closed its end and all of it has been taken.
  [[nodiscard]] virtual bool ended() { return false; }
  /// So far, by layer. For set-up and after a phase; not for each burst.
  [[nodiscard]] virtual Drops drops() = 0;
  /// Payloads that came in a form that is not the stream's: fragments, other protocols, a broken frame.
  [[nodiscard]] virtual u64 unmatched() { return 0; }
};

/// Where a send queue's packets lie. The payload of packet n (counted from 0) is at base + (n mod count) *
/// stride.
struct TxSlots {
  /// Aligned to 32 bytes, and so is `stride`; where a driver copies whole frames, the frames are aligned, and
  /// payloads lie behind their headers.
  u8* base = nullptr;
  u64 stride = 0;  ///< bytes from one slot to the next
  u32 count = 0;   ///< slots
  /// The slot of packet `n`.
  [[nodiscard]] u8* payload(u64 n) const { return base + n % count * stride; }
};

/// The send queue of one flow of any stream. StreamQueues makes them.
class TxQueue {
 public:
  virtual ~TxQueue() = default;
  /// Where its packets lie: at most kTemplates slots, each as long as the longest payload; fewer where these
  /// would take too much memory, or leave a core's cache for nothing. The sender fills them before its first
  /// packet.
  [[nodiscard]] virtual TxSlots slots() const = 0;
  /// Sends the packets first .. first + count - 1, each of `bytes` payload, and returns how many were
  /// accepted, in order; 0 when there is no room. Never blocks. The slots stay the queue's until completed()
  /// has passed them.
  virtual u32 send(u64 first, u32 count, u32 bytes) = 0;
  /// The packets before this one have been copied or sent: their slots may be written again.
  [[nodiscard]] virtual u64 completed() = 0;
  /// Blocks until there may be room again, at most `limit_ns`.
  virtual void wait(u64 limit_ns) = 0;
  /// True when the other end is gone: nothing more is accepted.
  [[nodiscard]] virtual bool broken() { return false; }
  /// True when no accepted packet waits for more room to leave as a whole; else it tries. Call it repeatedly
  /// behind the last packet of a phase, or that packet never arrives.
  [[nodiscard]] virtual bool flush() { return true; }
  /// Grows whenever something has left, of packets that go in parts each part.
  [[nodiscard]] virtual u64 moved() { return completed(); }
  /// Call it behind the last packet, repeatedly until true: everything accepted has left the queue, and the
  /// receiver, where the stream has such a notion, has been told that nothing follows.
  [[nodiscard]] virtual bool finish() { return true; }
};

}  // namespace doorbell::net
