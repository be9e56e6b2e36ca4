// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From a path's bench to the Result that its command prints.
#pragma once

#include <doorbell/error.hpp>

#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "measure/run_options.hpp"
#include "report/result.hpp"

namespace doorbell::cli {

/// What a bench found. Of each cell, `options` holds what the bench resolved itself.
struct BenchOutcome {
  std::vector<report::Cell> cells = {};
  std::string stop_reason = "done";
  bool failed = false;           ///< data, completion or timeout errors
  ExitCode code = ExitCode::ok;  ///< of the Error that ended it
  std::vector<std::string> warnings = {};
};

using Bench = std::function<BenchOutcome(const measure::RunWatch&)>;

/// Runs `bench` with a progress line, completes its cells' options, and delivers the Result; the exit code.
/// `inputs`: files that the bench itself reads or writes, so that no output may be one of them.
[[nodiscard]] int run_bench(const Options& options, Context& context, const measure::RunOptions& run,
                            const std::vector<std::string>& inputs, const Bench& bench);

}  // namespace doorbell::cli
