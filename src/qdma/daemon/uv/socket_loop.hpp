// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's sockets and worker threads over libuv.
#pragma once

#include <sys/socket.h>
#include <uv.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "qdma/daemon/fair_queue.hpp"
#include "qdma/daemon/outlet.hpp"
#include "qdma/daemon/roles.hpp"
#include "qdma/peer/closers.hpp"

namespace doorbell::qdma::daemon {

/// The sockets' events, and what the service sends through them.
struct SocketEvents {
  std::function<SocketId()> next;
  std::function<int(SocketId, Peer)> connect;  ///< 0, or the errno with which a client is refused
  std::function<void(SocketId, Message)> message;
  std::function<void(SocketId)> closed;
  std::function<void(std::string_view reason)> refused;  ///< a connection that could not be taken
};

/// Threads: the loop's, which calls run().
class SocketLoop final : public Outlet, public Workers {
 public:
  SocketLoop();
  ~SocketLoop() override;
  SocketLoop(const SocketLoop&) = delete;
  SocketLoop& operator=(const SocketLoop&) = delete;

  void set_events(SocketEvents events) { events_ = std::move(events); }
  [[nodiscard]] uv_loop_t* uv() { return &loop_; }
  /// Takes clients from a listening SOCK_SEQPACKET socket.
  void listen(Descriptor socket);
  /// Takes no more.
  void stop_listening();
  /// Serves until stop() is called.
  void run();
  void stop() { uv_stop(&loop_); }

  // Outlet
  void send(SocketId to, std::vector<u8> message, Descriptor with) override;
  [[nodiscard]] Descriptor open_pair(SocketId id, uid_t user, int& error) override;
  void close(SocketId id) override;
  void pause(SocketId id) override;
  void resume(SocketId id) override;
  // Workers
  void run(std::function<void()> work, std::function<void()> done) override;

 private:
  struct Outgoing {
    std::vector<u8> bytes;
    Descriptor with;
  };
  struct Socket {
    SocketLoop* loop = nullptr;
    SocketId id = 0;
    Descriptor fd;
    uv_poll_t poll{};
    std::deque<Outgoing> outgoing;
    bool client = false;  ///< a connection; else a transfer descriptor
    bool paused = false;
    bool full = false;  ///< so many of its user's files wait to be closed that it is not read
    uid_t user = 0;
  };
  struct Listener {
    SocketLoop* loop = nullptr;
    Descriptor fd;
    uv_poll_t poll{};
  };
  /// Watches `fd`; empty with an errno.
  Socket* add(Descriptor fd, SocketId id, uid_t user, bool client, int& error);
  void remove(Socket& s);
  void update(Socket& s);
  void readable(SocketId id);
  /// One message; false when there is none left or the socket has gone.
  bool take_message(Socket& s);
  void flush(Socket& s);
  void accept_some(Listener& l);
  void take_client(Descriptor fd);
  void refuse_without_descriptor(Listener& l);
  [[nodiscard]] Socket* find(SocketId id);

  uv_loop_t loop_{};
  void look_at_full();
  /// Closes a descriptor that a client has sent, or a client's socket, in which there may be more of them.
  void close_for(uid_t user, Descriptor fd) { closers_->close(user, std::move(fd)); }

  uv_timer_t retry_{};  ///< takes up accepting again
  uv_timer_t full_{};   ///< takes up reading again
  std::shared_ptr<Closers> closers_ = std::make_shared<Closers>();
  SocketEvents events_;
  std::map<SocketId, Socket*> sockets_;
  std::vector<Listener*> listeners_;
  Descriptor reserve_;  ///< closed for a moment when no descriptor is free, so that a client can be refused
  bool accepting_ = true;
};

/// The process at the other end, as the kernel has noted it; false with an errno.
[[nodiscard]] bool read_peer(int fd, Peer& peer, int& error);

/// A listening socket of `type` at `path`, with these permissions, or those of the umask. A socket file at
/// which no process listens is replaced. Throws Error, which begins with `name` and the path.
[[nodiscard]] Descriptor listen_at(const std::string& path, std::optional<unsigned> mode,
                                   const std::string& name = "socket", int type = SOCK_SEQPACKET);

}  // namespace doorbell::qdma::daemon
