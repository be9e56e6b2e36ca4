// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The card server as a protocol of SocketLoop: wire.hpp's messages, the driver's calls, and whose they are.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "qdma/server/books.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/server/driver_model.hpp"
#include "qdma/server/message.hpp"
#include "qdma/slash/front.hpp"
#include "service/local_socket.hpp"
#include "service/socket_loop.hpp"

namespace doorbell::qdma {

class CardServer::Loop final : public service::Protocol {
 public:
  Loop(std::shared_ptr<ModelCard> card, const ServerLimits& limits);
  ~Loop() override;

  [[nodiscard]] Descriptor connect();
  void listen(const std::string& path);
  void listen_slash(const std::string& folder, const SlashNotice& notice);
  [[nodiscard]] ServerCounts counts() const;
  [[nodiscard]] ModelCard& card() { return driver_.card(); }

 private:
  using Node = DriverModel::Node;
  using Reply = DriverModel::Reply;

  struct Socket {
    std::shared_ptr<Node> node;
    uid_t process = 0;  ///< as the loop takes turns
    bool control = false;
    bool greeted = false;  ///< a control socket has said hello
    bool surplus = false;  ///< one connection too many: its hello is refused, and it counts as none
    u64 next_serial = 0;
    /// Calls without a reply, by serial, each with its sequence; of transfers and buffers, what cancels them.
    struct Pending {
      u64 sequence = 0;
      std::shared_ptr<DriverModel::InFlight> call;
    };
    std::map<u64, Pending> pending;
  };

  // Protocol
  service::SocketId next_socket() override { return books_.next_socket++; }
  int connect(service::SocketId id, service::Peer peer) override;
  std::vector<u8> refusal(int) override { return {}; }
  void message(service::SocketId id, service::Message m) override;
  void closed(service::SocketId id) override;
  void refused(std::string_view) override { ++books_.refused; }

  void hello(u64 id, Socket& socket, const wire::RequestHeader& header, std::span<const u8> structure);
  void cancel(u64 id, Socket& socket, const wire::RequestHeader& header, std::span<const u8> structure);
  void held(u64 id, const wire::RequestHeader& header, std::span<const u8> structure);
  void call(u64 id, Socket& socket, const wire::RequestHeader& header, const service::Message& message);
  void finish(u64 id, u64 serial, u64 sequence, Reply& reply);
  void refuse(u64 id, u64 sequence, int error);
  void reply(u64 id, u64 sequence, i64 result, std::span<const u8> structure = {},
             std::span<const wire::SubReply> parts = {}, Descriptor descriptor = {});
  void give_back(Socket& socket);
  void sweep();
  void buffer_made();

  ServerBooks books_;
  DriverModel driver_;
  service::SocketLoop loop_;  // its worker makes buffers
  service::Timer sweeping_{loop_, [this] { sweep(); }};
  std::map<u64, Socket> sockets_;
  std::mutex files_mutex_;
  std::vector<service::SocketFile> files_;
  std::atomic<u64> surplus_{0};  // sockets, now; the loop's thread
  std::unique_ptr<slash::Front> slash_;
  std::thread thread_;
};

}  // namespace doorbell::qdma
