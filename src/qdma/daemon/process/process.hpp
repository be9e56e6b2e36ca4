// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon as a process: sockets, service, metrics, signals, the service manager.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qdma/daemon/service.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma::daemon {

struct DaemonOptions {
  ServiceOptions service = {};
  std::string socket = kDefaultSocket;
  unsigned socket_mode = 0660;
  std::string socket_group =
      "doorbell";               ///< of the socket's file, where the system has it; empty: the daemon's
  std::string roles_file = {};  ///< empty: the defaults
  std::string metrics = {};     ///< empty: none
  double end_s = 15;            ///< how long SIGTERM waits for the card
  /// Names in messages: these words, or the options of a command.
  std::string metrics_name = "metrics", socket_name = "socket", group_name = "socket group";
};

/// Throws Error for options that are wrong whatever the card is.
void check(const DaemonOptions& options);

/// Opens the card; throws Error. Also when the card has gone, from another thread, until it succeeds.
using OpenCard = std::function<std::shared_ptr<Driver>()>;

/// Serves until SIGTERM or SIGINT; SIGHUP reads the roles again. `sockets`, where there are some, replace
/// `options.socket`. Returns the exit code: 0, or 2 if the card did not become quiet in time. Throws Error
/// before it serves any client.
[[nodiscard]] int run_daemon(const OpenCard& open_card, const DaemonOptions& options,
                             std::vector<Descriptor> sockets, service::Log& log);

}  // namespace doorbell::qdma::daemon
