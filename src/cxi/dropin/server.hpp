// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One Cassini for several processes: a thread that answers the requests of the drop-in library. Data, queues
// and doorbells are shared memory and never messages.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "cxi/dropin/client.hpp"
#include "service/local_socket.hpp"

namespace doorbell::cxi::dropin {

class Server {
 public:
  /// Listens at `path`, which only this user may open. Throws Error.
  Server(const ModelConfig& config, const std::string& path);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// The Cassini's counts, with "clients", "requests", "refused" and "malformed".
  [[nodiscard]] nlohmann::ordered_json counts();
  /// Processes that are connected.
  [[nodiscard]] std::size_t connected();

 private:
  struct Connected {
    Descriptor socket;
    std::unique_ptr<Client> client;
    bool greeted = false;
  };
  void run();
  void accept_one();
  /// False: the client is to go.
  [[nodiscard]] bool serve(Connected& c);

  static constexpr std::size_t kMostClients = 128;

  Nic nic_;
  std::mutex mutex_;  // requests, and questions of counts()
  Descriptor listening_;
  service::SocketFile file_;
  Descriptor wake_;
  std::map<int, Connected> clients_;
  u64 accepted_ = 0, requests_ = 0, refused_ = 0, malformed_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace doorbell::cxi::dropin
