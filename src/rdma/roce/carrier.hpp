// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How packets travel between NICs: a UDP socket, or a ring in memory that two processes of a host share. The
// engine sees packets from BTH to pad; a carrier adds and checks the ICRC, keeps the trace and injects the
// faults of the wire.
#pragma once

#include <doorbell/config.hpp>

#include <compare>
#include <cstring>
#include <span>

namespace doorbell::roce {

/// A NIC on the network. IPv4 in the host's order.
struct Endpoint {
  u32 address = 0;
  u16 port = 0;
  auto operator<=>(const Endpoint&) const = default;
};

/// The way to one peer. Records of one packet each lie one behind the other in the memory that refill()
/// gives, whatever the carrier: so the engine writes a packet where it leaves from. Used by whoever has the
/// NIC's engine at the time.
class Path {
 public:
  static constexpr std::size_t kRecordHeader =
      16;  ///< u32 bytes from BTH to ICRC; the carrier's own 12 bytes
  static constexpr std::size_t kRecordAlignment = 16;
  static constexpr std::size_t kTrailer = 4;  ///< room for the ICRC behind a packet

  explicit Path(Endpoint peer) : peer_(peer) {}
  virtual ~Path() = default;
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  [[nodiscard]] Endpoint peer() const { return peer_; }
  /// Room for a packet of that many bytes (BTH to pad), 4-aligned or not; nullptr when there is none now: the
  /// peer's ring or the socket's buffer is full. Try again at the next round of the engine.
  [[nodiscard]] u8* room(std::size_t bytes) {
    if (static_cast<std::size_t>(end_ - at_) < record_bytes(bytes) && !refill(record_bytes(bytes)))
      return nullptr;
    return at_ + kRecordHeader;
  }
  /// The packet in the room() last given is complete. It leaves at the latest at the next flush().
  void sent(std::size_t bytes) {
    const u32 size = static_cast<u32>(bytes);
    std::memcpy(at_, &size, sizeof size);
    at_ += record_bytes(bytes);
  }
  /// Hands everything to the peer.
  virtual void flush() = 0;
  /// False for a path on which packets are lost when the receiver is slow (UDP): the engine then keeps a
  /// window.
  [[nodiscard]] virtual bool lossless() const = 0;

  [[nodiscard]] static constexpr std::size_t record_bytes(std::size_t packet) {
    return (kRecordHeader + packet + kTrailer + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
  }

 protected:
  /// Makes [at_, end_) hold `bytes` at least, flushing what must be; false if it cannot now.
  virtual bool refill(std::size_t bytes) = 0;

  u8* at_ = nullptr;  ///< where the next record begins
  u8* end_ = nullptr;

 private:
  Endpoint peer_;
};

/// A packet that has come. `bytes` is BTH to pad; the memory is valid until the carrier's next receive(), and
/// another process may write it meanwhile.
struct Arrival {
  Endpoint source;
  std::span<const u8> bytes;
};

/// The fates of a packet on the wire, where faults are injected (wire_faults.hpp).
enum class WireFault : u8 { drop, corrupt, duplicate, reorder, delay };
inline constexpr std::size_t kWireFaults = 5;

/// Counts of a NIC's carriers. Read by any thread at any time.
struct CarrierCounters {
  u64 packets_sent = 0, packets_received = 0;
  u64 flushes = 0;    ///< groups of packets that were handed on together
  u64 bad_icrc = 0;   ///< received and dropped
  u64 malformed = 0;  ///< received and dropped: shorter or longer than any packet
  u64 unsent = 0;     ///< lost at this end: nobody listens, or the network refuses
  u64 untraced = 0;   ///< missing in the trace: its file could not be written
  u64 rings_opened = 0, rings_accepted = 0, rings_refused = 0, rings_closed = 0;
  u64 wakes = 0;                 ///< of sleeping peers
  u64 faults[kWireFaults] = {};  ///< injected, by WireFault
};

/// All ways of one NIC. Its calls are made by whoever has the engine, but for what says otherwise.
class Carrier {
 public:
  Carrier() = default;
  virtual ~Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;

  [[nodiscard]] virtual Endpoint self() const = 0;
  /// The path to `peer`, for as long as the carrier exists. It connects by itself, and again after the peer
  /// was away; packets for a peer that is not there are lost, as on a wire.
  [[nodiscard]] virtual Path& path(Endpoint peer) = 0;
  /// The packets that have come, at most a burst; empty when none has. Ends the life of the packets of the
  /// call before.
  [[nodiscard]] virtual std::span<const Arrival> receive() = 0;
  /// flush() of each path that has unsent packets; what faults hold back and is due leaves, too.
  virtual void flush() = 0;
  /// When the carrier itself wants the next round (a delayed packet), by the clock of system/clock.hpp in ns;
  /// ~0: never.
  [[nodiscard]] virtual u64 next_due_ns() const = 0;
  /// Payload bytes of the largest packet that the network takes: a path MTU of verbs, 256 to kLargestMtu.
  [[nodiscard]] virtual u32 largest_mtu() const { return 4096; }

  // For a thread that sleeps. Any thread may call these.
  /// An epoll descriptor with an event when the next round may find something, provided that arm() and then a
  /// round of the engine came before; -1: there is none, the thread looks from time to time.
  [[nodiscard]] virtual int descriptor() const { return -1; }
  /// descriptor() is readable, too, while the eventfd `fd` is. Set-up only.
  virtual void add_to_descriptor(int fd) { static_cast<void>(fd); }
  /// From the next receive() on, peers wake who sleeps on descriptor(); without it they may not, which
  /// spares them a system call a flush while a program polls. Who finds no room() in a path is woken anyway
  /// when there is some.
  virtual void arm() {}
  /// Who slept is awake: the next receive() looks at everything.
  virtual void woken() {}
  [[nodiscard]] virtual CarrierCounters counters() const { return {}; }

  /// Writes the rest of the trace, and nothing more to it afterwards: a program that ends in the middle of a
  /// write leaves a file that no reader takes. Between rounds of the engine.
  virtual void finish_trace() {}

  /// In the child of a fork: closes what would keep peers from noticing the parent's end. After it the
  /// carrier can only be forgotten, not even destroyed. May be called in a fork handler.
  virtual void leave_to_parent() {}
};

}  // namespace doorbell::roce
