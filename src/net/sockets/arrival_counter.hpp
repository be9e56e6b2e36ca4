// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Counts the packets that reach a socket, with or without room for them.
//
// The kernel counts a coalesced datagram that finds no room as one drop, however many packets it holds. A BPF
// program that sees every datagram before its room is looked for makes the count exact.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <optional>

namespace doorbell::net::sockets {

class ArrivalCounter {
 public:
  /// Counts from now on. Empty where the kernel does not permit it, or is older than 5.5.
  [[nodiscard]] static std::optional<ArrivalCounter> attach(int socket);
  /// Packets so far, those of coalesced datagrams one by one.
  [[nodiscard]] u64 count() const;

 private:
  struct Unmap {
    void operator()(u64* page) const;
  };
  explicit ArrivalCounter(u64* page) : count_(page) {}
  std::unique_ptr<u64, Unmap> count_;  ///< memory that the program writes
};

}  // namespace doorbell::net::sockets
