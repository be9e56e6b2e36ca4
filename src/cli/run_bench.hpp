// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs a path's bench and makes the Result that its command prints.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/run_plan.hpp"
#include "measure/bench_run.hpp"

namespace doorbell::cli {

/// In each cell of the BenchResult, `options` holds the values that the bench chose itself.
using Bench = std::function<measure::BenchResult(const measure::RunWatch&)>;

/// Runs `bench` with a progress line (share, rate, time left), completes its cells' options, and prints the
/// Result; returns the exit code. `inputs`: files that the bench reads or writes, so that no output may be
/// one of them. `view`: as deliver() takes it. `plan` is said first, on the standard error output.
[[nodiscard]] int run_and_report(const Options& options, Context& context, const measure::RunOptions& run,
                                 const std::vector<std::string>& inputs, const Bench& bench,
                                 View view = nullptr, const RunPlan& plan = {});

}  // namespace doorbell::cli
