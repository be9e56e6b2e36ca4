// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's metrics, and the text that Prometheus reads.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "qdma/daemon/accounts.hpp"
#include "qdma/daemon/protocol.hpp"

namespace doorbell::qdma::daemon {

/// Counts since the start.
struct Metrics {
  std::map<std::pair<std::string_view, std::string_view>, u64> requests;  ///< by opcode and code
  std::map<std::string, u64> transfers;                 ///< by outcome: "ok", or an errno's name
  std::map<std::string, u64> host_buffers;              ///< of transfer descriptors, by outcome
  std::map<std::string_view, u64> refused_connections;  ///< by reason
  u64 accepted = 0;                                     ///< connections
  u64 malformed = 0;                                    ///< messages that are no request of either protocol
  u64 bytes_to_card = 0, bytes_from_card = 0;
  u64 retired = 0;          ///< queue pairs that have been stopped and deleted
  u64 retire_failures = 0;  ///< those that the card did not delete; their card memory stays reserved

  void count(Opcode o, Code c) { ++requests[{name(o), name(c)}]; }
};

/// Amounts at present.
struct Gauges {
  Holdings held;
  u64 users = 0;
  u64 card_memory_used = 0;
  u64 queue_pairs = 0;
  u64 descriptors = 0;  ///< transfer descriptors that are in force
  u64 revoked_descriptors = 0;
  u64 waiting = 0, running = 0;  ///< calls of the card
  u64 log_lost = 0;              ///< entries of the log, since the start
  u64 closing = 0;               ///< files and sockets of clients that are not closed yet
  bool card_gone = false;
};

/// "ESTALE"; "other" for what the daemon does not name.
[[nodiscard]] std::string error_name(int error);
/// The text format of Prometheus, version 0.0.4.
[[nodiscard]] std::string prometheus_text(const Metrics& metrics, const Gauges& now);

}  // namespace doorbell::qdma::daemon
