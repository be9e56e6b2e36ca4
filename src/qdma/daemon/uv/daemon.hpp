// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon as a process: sockets, service, metrics, signals, the service manager.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qdma/daemon/service.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

struct DaemonOptions {
  ServiceOptions service = {};
  std::string socket = kDefaultSocket;
  unsigned socket_mode = 0666;
  std::string roles_file = {};  ///< empty: the defaults
  std::string metrics = {};     ///< empty: none
  double end_s = 15;            ///< how long SIGTERM waits for the card
  /// Names in messages: these words, or the options of a command.
  std::string metrics_name = "metrics", socket_name = "socket";
};

/// Throws Error for options that are wrong whatever the card is.
void check(const DaemonOptions& options);

/// The listening sockets that the service manager has opened for this process; none is usual. To be called
/// before this process opens any file: their numbers are the lowest. Throws Error, and then owns none.
[[nodiscard]] std::vector<Descriptor> activated_sockets();

/// Serves until SIGTERM or SIGINT; SIGHUP reads the roles again. `sockets`, where there are some, replace
/// `options.socket`. Returns the exit code: 0, or 2 if the card did not become quiet in time. Throws Error
/// before it serves any client.
[[nodiscard]] int run_daemon(std::shared_ptr<Driver> card, const DaemonOptions& options,
                             std::vector<Descriptor> sockets, Log& log);

}  // namespace doorbell::qdma::daemon
