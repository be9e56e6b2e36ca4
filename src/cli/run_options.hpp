// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Converts the options of add_common_options() to the options of a run, for the command of any path.
#pragma once

#include <string>
#include <vector>

#include "cli/option.hpp"
#include "measure/run_options.hpp"

namespace doorbell::cli {

using measure::RunOptions;

/// Throws doorbell::Error for an option, of the path's too, whose condition does not hold.
[[nodiscard]] RunOptions run_options(const Options& options);

/// --infinite of the commands that can go on until Ctrl-C.
[[nodiscard]] Option infinite_option(Into into = {});

/// Makes the run of a command that has --infinite an endless one if it is given. Throws doorbell::Error if an
/// option that says how much is done, such as `count`, is given, too.
void read_infinite(const Options& options, const char* count, RunOptions* run);

/// The rates in the value of --fault.
[[nodiscard]] model::FaultRates fault_rates(const std::vector<ListItem>& items);

/// Throws Error if --fault is given for what is no model. `use`: the option that names one.
void check_faults(const RunOptions& run, const std::string& device, bool is_model, const std::string& use);

/// --server for --listen PORT.
[[nodiscard]] Option server_option(u16 port, char letter = '\0');
/// --listen-wait of the commands that have --listen and --connect.
[[nodiscard]] Option listen_wait_option(Into into);

/// Throws doorbell::Error for a given option that the listening end does not take: only those of `names` and
/// --quiet are its own.
void require_listening(const Options& options, const std::vector<std::string>& names);

/// Throws doorbell::Error if an option of --listen is given without it.
void require_no_listening(const Options& options);

/// The items of "a,b,c"; empty ones are kept.
[[nodiscard]] std::vector<std::string> split(const std::string& list);

}  // namespace doorbell::cli
