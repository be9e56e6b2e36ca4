// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The device's end of vfio-user: serves one PCI device at a socket, to one client after another.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "service/log.hpp"
#include "system/descriptor.hpp"
#include "vfio_user/device.hpp"

namespace doorbell::vfio_user {

struct ServerOptions {
  service::Log* log = nullptr;           ///< outlives the server; null: none
  u64 answer_limit_ns = 30'000'000'000;  ///< how long a client may take to answer a DMA message
  u64 second_client_ns = 2'000'000'000;  ///< how long a second client waits for the first one to go
};

/// Counts of what a server has done, since its start unless they say "now".
struct ServerCounts {
  u64 clients = 0;  ///< that have agreed on a version
  u64 messages = 0;
  u64 refused = 0;           ///< commands answered with an error
  u64 malformed = 0;         ///< bytes that were no message: the client was disconnected
  u64 turned_away = 0;       ///< clients that found another one, or no room
  u64 stray_replies = 0;     ///< answers that nobody waited for
  u64 unexpected_files = 0;  ///< descriptors that came where none belong
  u64 unanswered = 0;        ///< DMA messages that a client did not answer in time: he was disconnected
  u64 dma_reads = 0, dma_writes = 0, dma_refused = 0;  ///< by message
  u64 interrupts_raised = 0, interrupts_delivered = 0;
  u64 files_lost = 0;  ///< mapped files that were cut short
  u64 resets = 0;      ///< by message or by configuration space
  // Now.
  bool connected = false;
  u64 ranges = 0, remote_ranges = 0, files = 0, vectors = 0, closing = 0;
};
[[nodiscard]] nlohmann::ordered_json to_json(const ServerCounts& counts);

class Server {
 public:
  /// Serves in threads of its own until destroyed. `device` outlives it.
  Server(Device& device, const ServerOptions& options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Accepts connections at a path (mode 0600), which is removed at the end. A socket file that nothing
  /// listens at any more is replaced. Throws Error.
  void listen(const std::string& path);
  /// A new connection, as a client that connects gets it. Any thread. Throws Error.
  [[nodiscard]] Descriptor connect();
  /// Any thread.
  [[nodiscard]] ServerCounts counts() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace doorbell::vfio_user
