// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// DPDK's own packet generator, dpdk-testpmd, over the devices that a stream by DPDK would use.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/stream.hpp"

namespace doorbell::net::dpdk {

/// The counters of its one port that testpmd shows once a second.
struct TestpmdDisplay {
  u64 rx_packets = 0, rx_missed = 0, rx_errors = 0, rx_no_buffer = 0;
  u64 tx_packets = 0, tx_errors = 0;
  u64 rx_per_s = 0, tx_per_s = 0;  ///< since the display before, by testpmd's clock
};
/// Every complete display in what testpmd has printed so far. Throws Error for a text of another form.
[[nodiscard]] std::vector<TestpmdDisplay> testpmd_displays(std::string_view printed);

/// The totals of all its ports that testpmd prints at its end.
struct TestpmdTotals {
  u64 rx_packets = 0, rx_dropped = 0;
  u64 tx_packets = 0;
  u64 tx_refused = 0;  ///< packets for which the driver had no room; they are lost to testpmd
};
/// Throws Error when they are missing, come twice, contradict themselves or have another form.
[[nodiscard]] TestpmdTotals testpmd_totals(std::string_view printed);

struct TestpmdOptions {
  u32 seconds = 3;  ///< that are measured; up to three more pass before
  /// Processors of the sending and the receiving end; empty: wherever this thread may run.
  std::vector<u32> cores = {};
  /// Asked several times a second; true ends the run.
  std::function<bool()> interrupted = {};
  std::string title = "comparison testpmd";  ///< in messages
};

struct TestpmdRun {
  std::string version;  ///< "DPDK 22.11.11", of the plugin's libraries
  std::string mode;     ///< "txonly to rxonly", "io", "txonly"
  u32 seconds = 0;
  double sent_per_s = 0;
  std::optional<double> received_per_s;  ///< none where nothing receives
  u64 sent = 0, refused = 0;             ///< of the whole run, warm-up included
  std::optional<u64> received;           ///< none where the receiving end forgets it when the sender ends
  u64 missed = 0, no_buffer = 0;
  std::vector<std::string> commands;
};

/// Whether dpdk-testpmd can be started here.
[[nodiscard]] BackendStatus testpmd_status();

/// Throws Error for what run_testpmd() refuses before it starts anything.
void check_testpmd(const StreamRequest& request, Link& link, const TestpmdOptions& options);

/// Packets that it takes or sends in one call, at most.
inline constexpr u32 kTestpmdBurst = 512;

/// Runs it with frames as long as the request's, one queue on each side: over interfaces and memif as two
/// processes (txonly, rxonly), of which none checks what arrives; over `ring` as one that passes a burst
/// round (io); over `null` as one that sends. Throws Error: it cannot be started (ExitCode::absent), ended
/// too early, or printed what is not understood. An interrupted run has no rates.
[[nodiscard]] TestpmdRun run_testpmd(const StreamRequest& request, Link& link, const TestpmdOptions& options);

}  // namespace doorbell::net::dpdk
