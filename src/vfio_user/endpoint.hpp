// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One end of a vfio-user socket for a program that waits: messages go whole, and come in any pieces.
#pragma once

#include <array>
#include <mutex>
#include <span>
#include <vector>

#include "system/descriptor.hpp"
#include "vfio_user/wire.hpp"

namespace doorbell::vfio_user {

/// A message that has come.
struct Incoming {
  Header header;
  std::vector<u8> payload;
  std::vector<Descriptor> files;
};

/// Thread rule: any threads send; one receives.
class Endpoint {
 public:
  /// Of a connected stream socket. A peer that takes nothing of a message for `timeout_ns` counts as gone.
  Endpoint(Descriptor socket, u64 timeout_ns);

  /// 0, or an errno: ETIMEDOUT, or that of a peer that has gone. Descriptors go with the first byte.
  [[nodiscard]] int send(std::span<const u8> message, std::span<const int> files = {});
  /// Waits for the next message for as long as the peer is there. 0; ECONNRESET at its end or after shut();
  /// EPROTO for bytes that begin no message of at most kLongest; ENOBUFS if descriptors of it were lost.
  [[nodiscard]] int receive(Incoming& out);
  /// Ends it: both directions, for both sides. Any thread.
  void shut();

 private:
  [[nodiscard]] int fill(std::span<u8> space, std::vector<Descriptor>& files);

  Descriptor socket_;
  u64 timeout_ns_;
  std::mutex sending_;
};

/// The most descriptors that a message of the protocol has in practice; room for more is kept, so that none
/// is closed unseen.
inline constexpr u32 kMostFiles = 16;

}  // namespace doorbell::vfio_user
