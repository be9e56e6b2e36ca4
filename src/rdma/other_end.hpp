// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The other process of a run with --connect, as the client sees it: it takes over the client's options,
// connects its queue pairs, prepares its buffers for each phase and reports what arrived in them.
#pragma once

#include "measure/runner.hpp"
#include "rdma/exchange.hpp"
#include "rdma/plan.hpp"

namespace doorbell::rdma {

/// What the two ends agree on for one cell. The server derives everything from it.
[[nodiscard]] nlohmann::ordered_json cell_message(const BenchOptions& options, const CellPlan& plan);
/// Reads it back, checking every number. Throws doorbell::Error.
void read_cell_message(const nlohmann::ordered_json& message, BenchOptions* options, CellPlan* plan);

/// What the client says when a phase begins.
struct PhaseMessage {
  u64 generation = 0;  ///< OpPhase::generation
  u64 count = 0;       ///< operations of each queue pair; ~0: nobody knows
};
[[nodiscard]] nlohmann::ordered_json phase_message(const PhaseMessage& phase);
[[nodiscard]] PhaseMessage read_phase_message(const nlohmann::ordered_json& message);

[[nodiscard]] nlohmann::ordered_json stats_message(const OpStats& stats);
[[nodiscard]] OpStats read_stats_message(const nlohmann::ordered_json& message);

class OtherEnd {
 public:
  /// Connects to a listening doorbell.
  OtherEnd(const SocketName& at, double limit_s, const measure::StopFlag* stop);

  /// Makes the other end ready for a cell and connects the session's queue pairs to it.
  void open(const BenchOptions& options, const CellPlan& plan, Session& session);
  /// Before each phase; returns when the other end's buffers and receives are there.
  void begin(const PhaseMessage& phase);
  /// After it: how many operations each queue pair did. What the other end found.
  [[nodiscard]] measure::PhaseOutcome end(const measure::PhaseOutcome& mine);
  /// No more cells.
  void finish();
  [[nodiscard]] const std::string& name() const { return exchange_.peer(); }

 private:
  Exchange exchange_;
};

}  // namespace doorbell::rdma
