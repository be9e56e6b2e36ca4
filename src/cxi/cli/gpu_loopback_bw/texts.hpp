// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The output of `cxi_gpu_loopback_bw`: the form of the tool of that name, version 1.5.1, byte for byte.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cxi/loopback.hpp"

namespace doorbell::cli {

/// The contents of the lines above the table.
struct LoopbackHeader {
  std::string device = {};
  u64 service = 1;
  std::optional<u64> tx_gpu = {};
  std::optional<u64> rx_gpu = {};
  std::string gpu_type = {};           ///< type of the GPUs above
  std::optional<u64> duration_s = {};  ///< instead of iterations
  u64 iterations = 0;
  u64 bytes = 0;
  u64 puts = 0;
  std::string hugepages = "Disabled";
};

/// Everything known before the device is opened.
[[nodiscard]] std::string loopback_header(const LoopbackHeader& header);
/// The separator and the column names.
[[nodiscard]] std::string loopback_columns();
[[nodiscard]] std::string loopback_separator();
[[nodiscard]] std::string loopback_row(u64 bytes, u64 writes, double elapsed_us);

struct LoopbackFigures {
  double gbit_per_s = 0;  ///< payload, 10^9 bits
  double mpacket_per_s = 0;
};
/// All zeros if no time has passed.
[[nodiscard]] LoopbackFigures loopback_figures(u64 bytes, u64 writes, double elapsed_us);

/// Pages that the buffers in system memory take: `ends` buffers, each of a whole number of pages.
[[nodiscard]] u64 hugepages_needed(u64 bytes, u64 page_bytes, unsigned ends);

/// Each element is one line without a newline. `running`: the iterations had begun.
[[nodiscard]] std::vector<std::string> failure_lines(const cxi::LoopbackFailure& failure, bool running);
/// The result of the data check; empty if nothing was wrong.
[[nodiscard]] std::vector<std::string> mismatch_lines(const report::Verify& verify);

}  // namespace doorbell::cli
