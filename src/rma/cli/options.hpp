// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the commands of all paths with one-sided operations share.
#pragma once

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "rma/bench.hpp"

namespace doorbell::cli {

/// Where queues and buffers lie, what is measured, batches, threads. `queue`: what the path calls a queue.
void add_rma_options(OptionTable& table, const std::string& queue, bool ping_pong = false);

/// `base` with what those options, and the common ones, say.
[[nodiscard]] rma::BenchOptions rma_options(const Options& options, rma::BenchOptions base);

/// "A", "A,B,C" or "A:B"; of a range the lower end and then the powers of two up to the upper end.
[[nodiscard]] std::vector<u32> sizes_of(const std::string& text);

/// Runs the bench with a progress display, and delivers its Result; the exit code.
[[nodiscard]] int run_rma(const rma::BenchOptions& bench, const Options& options, Context& context);

}  // namespace doorbell::cli
