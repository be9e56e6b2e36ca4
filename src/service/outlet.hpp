// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sockets of a server, as its protocol sees them, and the protocol, as the sockets see it. SocketLoop has
// the kernel's sockets; tests have their own.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <string_view>
#include <vector>

#include "service/message.hpp"
#include "service/peer.hpp"
#include "system/descriptor.hpp"

namespace doorbell::service {

/// A socket's number; never used twice.
using SocketId = u64;

class Outlet {
 public:
  virtual ~Outlet() = default;
  /// Sends it after what has been sent before; a socket that has gone takes it silently.
  virtual void send(SocketId to, std::vector<u8> message, Descriptor with) = 0;
  /// A new pair of connected sockets: one end is served as `id`, the other is returned. Without one, `error`
  /// is an errno. `user` has the other end.
  [[nodiscard]] virtual Descriptor open_pair(SocketId id, uid_t user, int& error) = 0;
  /// Closes it; what the other end has left no room for is not sent. Protocol::closed() is not called.
  virtual void close(SocketId id) = 0;
  /// Whether messages of this socket are taken.
  virtual void pause(SocketId id) = 0;
  virtual void resume(SocketId id) = 0;
};

/// A server's logic: what its clients' messages do. The loop's thread calls it.
class Protocol {
 public:
  virtual ~Protocol() = default;
  /// A number for a socket.
  [[nodiscard]] virtual SocketId next_socket() = 0;
  /// A client. 0, or the errno with which it is refused.
  [[nodiscard]] virtual int connect(SocketId id, Peer peer) = 0;
  /// The message with which a client is refused that is not connected; none if it is empty.
  [[nodiscard]] virtual std::vector<u8> refusal(int error) = 0;
  /// A message of a client or of a pair's other end. Not while the socket is paused.
  virtual void message(SocketId id, Message m) = 0;
  /// The other end has gone.
  virtual void closed(SocketId id) = 0;
  /// A client could not be taken, or one was disconnected, for want of: "descriptors", "memory", "peer",
  /// "system".
  virtual void refused(std::string_view reason) = 0;
};

}  // namespace doorbell::service
