// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An io_uring that sends and receives the messages of one socket.
#pragma once

#include <liburing.h>
#include <sys/socket.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "qdma/peer/incoming.hpp"
#include "qdma/peer/wire.hpp"

namespace doorbell::qdma {

/// Thread rule: send() and arm() under the owner's lock; take() in one thread at a time.
class SocketRing {
 public:
  /// Null where the kernel has no ring for it.
  [[nodiscard]] static std::unique_ptr<SocketRing> make(int socket);
  ~SocketRing();
  SocketRing(const SocketRing&) = delete;
  SocketRing& operator=(const SocketRing&) = delete;

  /// 0 or an errno. What the kernel says later comes from take_unsent().
  [[nodiscard]] int send(std::span<const u8> bytes, std::span<const int> descriptors);
  /// Has a receive in the ring.
  void arm();
  /// Waits until `until_ns` for a message; Status::none if none came.
  /// It also returns when a message could not be sent.
  void take(Incoming& out, u64 until_ns);
  /// The requests that were not sent: sequence and errno. Under the owner's lock.
  [[nodiscard]] std::vector<std::pair<u64, int>> take_unsent();

 private:
  struct Sending;
  explicit SocketRing(int socket);
  /// Has the kernel take what was prepared: 0, or an errno, and then `entry` does nothing.
  int submit(io_uring_sqe& entry);

  const int socket_;
  io_uring ring_{};
  bool armed_ = false;
  std::map<u64, std::unique_ptr<Sending>> sending_;
  u64 next_ = 1;
  std::vector<u64> sent_;                    // what take() has seen, for send() to free
  std::vector<std::pair<u64, int>> unsent_;  // and what it has seen with an error
  std::mutex sent_mutex_;
  std::array<u8, wire::kMaxMessage> bytes_{};
  iovec iov_{};
  msghdr header_{};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(wire::kMaxDescriptors * sizeof(int))> control_{};
};

}  // namespace doorbell::qdma
