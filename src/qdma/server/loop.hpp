// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The card server's thread: it waits for all sockets at once and for what device threads have finished, and
// for nothing else.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "qdma/peer/closers.hpp"
#include "qdma/peer/local_socket.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/server/driver_model.hpp"
#include "qdma/server/message.hpp"
#include "qdma/server/worker.hpp"

namespace doorbell::qdma {

class CardServer::Loop {
 public:
  Loop(std::shared_ptr<ModelCard> card, const ServerLimits& limits);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  [[nodiscard]] Descriptor connect();
  void listen(const std::string& path);
  [[nodiscard]] ServerCounts counts() const;
  [[nodiscard]] ModelCard& card() { return driver_.card(); }

 private:
  using Node = DriverModel::Node;
  using Reply = DriverModel::Reply;

  /// A call that has ended.
  struct Finished {
    u64 socket = 0;
    u64 serial = 0;  ///< of the call, on its socket
    u64 sequence = 0;
    Reply reply;
  };
  /// Where other threads leave what the loop shall do. Calls that outlive the loop keep it.
  struct Mailbox {
    Descriptor wake;  // an eventfd
    std::mutex mutex;
    std::vector<Finished> finished;
    std::vector<Descriptor> connections;
    std::vector<Descriptor> listeners;
    bool stop = false;

    void ring() const;
    template <class Change>
    void leave(Change change) {
      {
        const std::lock_guard lock(mutex);
        change();
      }
      ring();
    }
  };
  struct Outgoing {
    std::vector<u8> bytes;
    Descriptor descriptor;
  };
  struct Socket {
    Descriptor fd;
    std::shared_ptr<Node> node;
    bool control = false;
    bool greeted = false;  ///< a control socket has said hello
    bool closing = false;  ///< when its replies have been sent
    bool surplus = false;  ///< one connection too many: its hello is refused, and it counts as none
    u64 next_serial = 0;
    /// Calls without a reply, by serial, each with its sequence; of transfers and buffers, what cancels them.
    struct Pending {
      u64 sequence = 0;
      std::shared_ptr<DriverModel::InFlight> call;
    };
    std::map<u64, Pending> pending;
    std::deque<Outgoing> unsent;  ///< while the other end does not read
  };

  void run();
  void serve(u64 id, u32 events);
  void read(u64 id, Socket& socket);
  void handle(u64 id, Socket& socket, Incoming& message);
  void hello(Socket& socket, const wire::RequestHeader& header, std::span<const u8> structure);
  void cancel(Socket& socket, const wire::RequestHeader& header, std::span<const u8> structure);
  void call(u64 id, Socket& socket, const wire::RequestHeader& header, Incoming& message);
  void finish(Finished& finished);
  void take_mail();
  void accept(int listener);
  void refuse(Socket& socket, u64 sequence, int error);
  void reply(Socket& socket, u64 sequence, i64 result, std::span<const u8> structure = {},
             std::span<const wire::SubReply> parts = {}, Descriptor descriptor = {});
  void flush(Socket& socket);
  void watch(u64 id, const Socket& socket, int operation);
  u64 add(Descriptor fd, std::shared_ptr<Node> node, bool control);
  void add_connection(Descriptor fd);
  void remove(u64 id);
  /// All clients are one user's.
  void close(Descriptor fd) { closers_.close(0, std::move(fd)); }
  void update_counts();

  std::shared_ptr<Mailbox> mail_ = std::make_shared<Mailbox>();
  DriverModel driver_;
  Worker makers_;    // of buffers
  Closers closers_;  // of what clients have sent, and of their sockets
  Descriptor epoll_;
  Descriptor spare_;  // given up for a moment to turn a client away when there are no descriptors left
  std::map<u64, Socket> sockets_;
  std::map<u64, Descriptor> listeners_;
  std::vector<SocketFile> files_;
  u64 next_id_ = 1;
  std::vector<Finished> finished_;
  u64 requests_ = 0, refused_ = 0, buffers_ = 0;
  const ServerLimits limits_;
  u64 connections_ = 0, descriptors_ = 0, surplus_ = 0;  // sockets of each kind, now
  bool stop_ = false;
  mutable std::mutex counts_mutex_;
  ServerCounts counts_;
  std::thread thread_;
};

}  // namespace doorbell::qdma
