// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sockets, as the daemon's logic sees them; libuv's are in uv/, tests have their own.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <span>
#include <vector>

#include "qdma/peer/closers.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

/// A socket's number; never used twice.
using SocketId = u64;

/// A message that has come.
struct Message {
  std::span<const u8> bytes;
  std::vector<ForeignFile> descriptors = {};
  bool truncated = false;  ///< it was longer, or descriptors of it were lost (no free ones here)
};

class Outlet {
 public:
  virtual ~Outlet() = default;
  /// Sends it after what has been sent before; a socket that has gone takes it silently.
  virtual void send(SocketId to, std::vector<u8> message, Descriptor with) = 0;
  /// A new pair of connected sockets: one end is served as `id`, the other is returned. Without one, `error`
  /// is an errno. `user` has the other end.
  [[nodiscard]] virtual Descriptor open_pair(SocketId id, uid_t user, int& error) = 0;
  /// Closes it; what the other end has left no room for is not sent. Service::closed() is not called.
  virtual void close(SocketId id) = 0;
  /// Whether messages of this socket are taken.
  virtual void pause(SocketId id) = 0;
  virtual void resume(SocketId id) = 0;
};

}  // namespace doorbell::qdma::daemon
