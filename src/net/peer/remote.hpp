// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The receiving end in another process, as the sender sees it, and the messages between the two.
#pragma once

#include "exchange/exchange.hpp"
#include "net/bench/cell_setup.hpp"

namespace doorbell::net {

inline constexpr std::size_t kLongestVerdict = 200;
inline constexpr exchange::RunKind kRunKind = {"net", 18517};

[[nodiscard]] nlohmann::ordered_json cell_message(const BenchOptions& options, const CellSetup& setup);
/// Reads such a message and checks every number. Throws Error.
void read_cell_message(const nlohmann::ordered_json& message, BenchOptions* options, CellSetup* setup);
[[nodiscard]] nlohmann::ordered_json sent_message(const std::vector<u64>& sent);
[[nodiscard]] std::vector<u64> read_sent_message(const nlohmann::ordered_json& message, u32 flows);
[[nodiscard]] nlohmann::ordered_json phase_message(const ReceivePhase& phase);
[[nodiscard]] ReceivePhase read_phase_message(const nlohmann::ordered_json& message);
[[nodiscard]] nlohmann::ordered_json totals_message(const ReceiveTotals& totals);
[[nodiscard]] ReceiveTotals read_totals_message(const nlohmann::ordered_json& message);

/// The listening process. For each cell: open(), then the stream is opened, then ready().
class RemoteReceiver {
 public:
  RemoteReceiver(const BenchOptions& options, const measure::StopFlag* stop);
  /// Tells the other process of the cell, which begins to open its end; returns the link between the two.
  [[nodiscard]] std::unique_ptr<Link> open(const BenchOptions& options, const CellSetup& setup);
  /// The other end of the stream that has been opened here.
  [[nodiscard]] std::unique_ptr<ReceivingEnd> ready();
  /// There will be no further cell. Both ends say how the run has ended: its exit code and its verdict.
  void finish(int code, const std::string& verdict);
  /// This end has failed: the other one says why.
  void fail(const std::string& why) noexcept { exchange_.fail(why); }

 private:
  exchange::Exchange exchange_;
  double grace_s_;
  double timeout_s_;
};

}  // namespace doorbell::net
