// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A NIC's UDP socket: records (carrier.hpp) become datagrams with an ICRC, many with one system call; what
// comes is split into packets again and checked.
#pragma once

#include <doorbell/config.hpp>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "rdma/roce/carrier.hpp"
#include "rdma/roce/counted.hpp"
#include "system/descriptor.hpp"

namespace doorbell::roce {

class Trace;

/// Counts of a carrier; see CarrierCounters.
struct WireCounts {
  Counted packets_sent, packets_received, flushes, bad_icrc, malformed, unsent;
};

class UdpSocket {
 public:
  struct Options {
    bool segmentation = true;
    bool damage = false;  ///< records may ask for it (damage.hpp)
  };
  /// Throws Error where the address is none of this machine's, or taken.
  UdpSocket(Endpoint self, Options options, WireCounts& counts, Trace* trace);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  /// The port that the socket has, where it was asked for any (0).
  [[nodiscard]] Endpoint self() const { return self_; }

  /// Sends the records from `at` to `end`, and returns where those begin that the socket has no room for.
  /// Packets that the network refuses are lost, and counted.
  u8* send(Endpoint peer, u8* at, u8* end);
  /// Appends the packets that have come. They are valid until the next call.
  void receive(std::vector<Arrival>& into);

 private:
  static constexpr std::size_t kBatch = 64;       ///< records of one sendmmsg, at most
  static constexpr std::size_t kBuffers = 8;      ///< datagrams of one recvmmsg
  static constexpr std::size_t kLongest = 65536;  ///< bytes of a datagram, with what the kernel has joined

  union Control;
  struct Group;
  [[nodiscard]] bool plausible(u32 source, u16 identification);
  void split(Endpoint source, const u8* data, std::size_t bytes, std::size_t segment,
             std::vector<Arrival>& into);

  Endpoint self_;
  Descriptor socket_;
  WireCounts& counts_;
  Trace* trace_;
  Options options_;
  std::unique_ptr<u8[]> buffers_;
  /// The last identification of an address that counts them; by the low bits of the address.
  struct Counting {
    u32 source = 0;
    u16 last = 0;
  };
  std::array<Counting, 64> counting_{};
};

}  // namespace doorbell::roce
