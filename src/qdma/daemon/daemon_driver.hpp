// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The back end "daemon[:PATH]": calls of the control node are requests to doorbelld, transfer descriptors are
// its sockets.
#pragma once

#include <memory>
#include <string>

#include "qdma/daemon/client.hpp"
#include "qdma/peer/socket_driver.hpp"

namespace doorbell::qdma::daemon {

class DaemonDriver final : public SocketDriver {
 public:
  /// Connects and says hello. Throws Error.
  explicit DaemonDriver(const std::string& spec, const Patience& patience = {});
  [[nodiscard]] std::string kind() const override { return kind_; }
  using Driver::call;
  [[nodiscard]] CallResult call(int fd, u32 number, std::span<u8> structure,
                                const CallOptions& options) override;
  [[nodiscard]] std::string why(int error) const override;
  /// For buffers in card memory, which are no calls of a driver.
  [[nodiscard]] DaemonClient& client() { return client_; }

 private:
  mutable DaemonClient client_;
  std::string kind_;
};

}  // namespace doorbell::qdma::daemon
