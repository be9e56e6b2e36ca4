// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Functions that the commands of all paths with one-sided operations share.
#pragma once

#include "cli/command.hpp"
#include "cli/run_options.hpp"
#include "rma/bench.hpp"

namespace doorbell::cli {

/// Options for what is measured, batches and threads, and without `device_memory` for where queues and
/// buffers lie: a path to a device's own memory has options of its own for that. `queue`: what the path calls
/// a queue, and `window` the operations that one of them can have in flight.
void add_rma_options(OptionTable& table, const std::string& queue, bool ping_pong = false,
                     bool device_memory = false, u32 window = rma::kMaxWindow);

/// --size; the text says what it counts and from how many bytes on.
void add_size_option(OptionTable& table, const std::string& what, u32 smallest, const std::string& not_given);
/// --num-queues
void add_queues_option(OptionTable& table, const std::string& help);

/// `base`, changed by those options and the common ones.
[[nodiscard]] rma::BenchOptions rma_options(const Options& options, rma::BenchOptions base);

/// Runs the bench with a progress display and prints its Result; returns the exit code.
[[nodiscard]] int run_rma(const rma::BenchOptions& bench, const Options& options, Context& context);

}  // namespace doorbell::cli
