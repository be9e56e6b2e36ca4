// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What every measuring command does with its Result.
#pragma once

#include <doorbell/error.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "report/result.hpp"

namespace doorbell::cli {

/// Refuses --json and --csv files that cannot be written, before anything has been done for them, and those
/// that are one of `inputs` (files that the run reads or writes) or each other.
void check_outputs(const Options& options, const std::vector<std::string>& inputs = {});

/// The same of one option; "-" and nothing are fine.
void check_output(std::string_view name, const std::string& path,
                  const std::vector<std::string>& inputs = {});

/// A Result with argv and environment filled in.
[[nodiscard]] report::Result new_result(const Context& context);

/// Says on standard error what is wrong; the exit code that goes with it.
int complain(const std::string& prefix, const Error& e);

/// Sets the exit code, prints the table, then writes --json and --csv. `--json -` takes stdout, so the table
/// then stays away. Where there is no table, what went wrong is said on standard error. A file that cannot be
/// written is told there too and takes nothing else away. Returns the worst exit code of all that.
int deliver(report::Result& result, const Options& options, const Context& context);

}  // namespace doorbell::cli
