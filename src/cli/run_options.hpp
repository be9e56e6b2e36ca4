// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Converts the options of add_common_options() to the options of a run, for the command of any path.
#pragma once

#include <doorbell/region.hpp>

#include <string>
#include <vector>

#include "cli/option.hpp"
#include "measure/run_options.hpp"

namespace doorbell::cli {

using measure::RunOptions;

[[nodiscard]] RunOptions run_options(const Options& options);

/// The rates in the option --fault.
[[nodiscard]] model::FaultRates run_fault_rates(const Options& options);

/// Throws Error if --fault is given for what is no model. `use`: the option that names one.
void check_faults(const RunOptions& run, const std::string& device, bool is_model, const std::string& use);

/// What --host-memory means, for the commands that have it.
[[nodiscard]] Place host_memory(const Options& options);

/// The items of "a,b,c"; empty ones are kept.
[[nodiscard]] std::vector<std::string> split(const std::string& list);

}  // namespace doorbell::cli
