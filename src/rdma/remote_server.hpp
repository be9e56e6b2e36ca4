// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other process of a run with --connect, as the client sees it. That process takes over the client's
// options, connects its queue pairs, prepares its buffers for each phase and reports what arrived in them.
#pragma once

#include <functional>

#include "exchange/alive.hpp"
#include "rdma/bench.hpp"
#include "rdma/nic_port.hpp"
#include "rma/cell_setup.hpp"

namespace doorbell::rdma {

/// Makes the message that describes one cell. The server derives everything from it.
[[nodiscard]] nlohmann::ordered_json cell_message(const rma::BenchOptions& options,
                                                  const ConnectionOptions& connection,
                                                  const CellSetup& setup);
/// Reads such a message and checks every number. Throws doorbell::Error.
void read_cell_message(const nlohmann::ordered_json& message, BenchOptions* options, CellSetup* setup);

[[nodiscard]] nlohmann::ordered_json phase_message(const PhaseMessage& phase);
[[nodiscard]] PhaseMessage read_phase_message(const nlohmann::ordered_json& message);

[[nodiscard]] nlohmann::ordered_json stats_message(const OpStats& stats);
[[nodiscard]] OpStats read_stats_message(const nlohmann::ordered_json& message);

/// Both processes call this together. It connects the queue pairs of the two and gives each session the keys
/// to the other's memory.
void connect_sessions(exchange::Exchange& exchange, NicQueues& queues, Session& session);

class RemoteServer final : public RemoteProcess {
 public:
  /// Connects to a listening doorbell. `queues` returns the queues of the session that is open.
  /// `setting`: what errors call the address.
  RemoteServer(const exchange::SocketName& at, const std::string& setting, double limit_s,
               const measure::StopFlag* stop, const ConnectionOptions& connection,
               std::function<NicQueues&()> queues);

  void open(const rma::BenchOptions& options, const CellSetup& setup, Session& session) override;
  void begin(const PhaseMessage& phase) override;
  void alive() override;
  [[nodiscard]] measure::PhaseOutcome end(const measure::PhaseOutcome& mine) override;
  void finish() override;

 private:
  exchange::Exchange exchange_;
  exchange::SignsOfLife alive_{exchange_};
  double grace_s_;
  ConnectionOptions connection_;
  std::function<NicQueues&()> queues_;
};

}  // namespace doorbell::rdma
