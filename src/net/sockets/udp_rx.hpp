// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receiving datagrams: many a system call, and with coalescing (UDP_GRO) many packets a datagram, which are
// delivered where they lie.
#pragma once

#include <sys/socket.h>

#include <array>
#include <functional>
#include <optional>
#include <vector>

#include "net/sockets/arrival_counter.hpp"
#include "net/sockets/drop_counter.hpp"
#include "net/sockets/socket.hpp"

namespace doorbell::net::sockets {

struct UdpSource {
  Descriptor socket;
  std::optional<ArrivalCounter> arrivals = {};  ///< since before the socket had a port
  u64 taken = 0;                                ///< packets that have been taken from the socket before
};

/// The sockets of one receive queue and the buffers that they share.
class UdpRxQueue final : public RxQueue {
 public:
  struct Config {
    u16 queue = 0;
    u32 payload_bytes = 0;
    u32 burst = 64;
    bool coalesce = false;  ///< the sockets have UDP_GRO
    Place place = Place::pageable;
    std::shared_ptr<gpu::Gpu> gpu = {};
    /// Counts datagrams that the kernel has found broken; not given: another queue does.
    std::function<u64()> broken = {};
  };
  UdpRxQueue(std::vector<UdpSource> sources, const Config& config);

  u32 receive(Burst& burst) override;
  void release(Burst& burst) override;
  void wait(u64 limit_ns) override;
  /// Exact while nothing waits in the sockets. Before, and with coalescing where arrivals are not counted,
  /// `socket` has a coalesced datagram once, and `socket_most` says how many packets these can be.
  [[nodiscard]] Drops drops() override;
  /// Packets longer than the stream's, and broken datagrams.
  [[nodiscard]] u64 unmatched() override;

  /// Whether drops() counts packets, not coalesced datagrams.
  [[nodiscard]] bool counts_packets() const;
  [[nodiscard]] u64 too_long() const { return too_long_; }
  [[nodiscard]] u64 datagrams() const { return filled_; }
  [[nodiscard]] u64 buffer_bytes() const { return memory_.bytes(); }

 private:
  struct Control {
    alignas(cmsghdr) std::array<u8, 2 * CMSG_SPACE(sizeof(int))> bytes;
  };
  struct Filled {
    u32 bytes = 0;
    u32 segment = 0;     ///< bytes of each packet but the last
    bool empty = false;  ///< one packet, of no bytes
  };

  struct Source {
    UdpSource of;
    DropCounter drops;  ///< of datagrams, by the kernel's count
    u64 packets = 0;    ///< taken from the socket
  };

  [[nodiscard]] Drops dropped(Source& source) const;
  void deliver(Burst& burst);
  void fill(std::size_t source, u32 packets);
  void accept(std::size_t source, u32 buffer);

  std::vector<Source> sources_;
  std::vector<pollfd> polls_;
  u16 queue_;
  bool coalesce_;
  u32 max_payload_;
  std::function<u64()> of_broken_;
  u64 stride_;
  u32 most_packets_;  ///< that a datagram may hold
  u32 buffers_;
  Region memory_;
  std::vector<mmsghdr> messages_;  // one a buffer, as all below
  std::vector<iovec> vectors_;
  std::vector<Control> controls_;
  std::vector<Filled> contents_;

  // Buffers are used in turn; a count modulo buffers_ is not their index, because the turn starts again at
  // the first whenever all are free: a short turn stays in the caches.
  u64 filled_ = 0, delivered_ = 0, released_ = 0;
  u64 outstanding_ = 0;      ///< packets handed over and not released
  u32 head_ = 0, tail_ = 0;  ///< the next buffer to fill, to deliver
  u32 offset_ = 0;           ///< in the buffer being delivered
  u32 usual_packets_ = 1;    ///< in a datagram, lately
  std::size_t turn_ = 0;     ///< the socket to ask first
  u64 too_long_ = 0;
};

}  // namespace doorbell::net::sockets
