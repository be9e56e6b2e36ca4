// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What every measuring command does with its Result.
#pragma once

#include "cli/command.hpp"
#include "report/result.hpp"

namespace doorbell::cli {

/// Refuses --json and --csv files that cannot be written, before anything has been done for them.
void check_outputs(const Options& options);

/// The same of one option; "-" and nothing are fine.
void check_output(std::string_view name, const std::string& path);

/// A Result with argv and environment filled in.
[[nodiscard]] report::Result new_result(const Context& context);

/// Sets the exit code and the warnings of the environment, writes --json and --csv, prints the table.
/// Returns the exit code. `--json -` takes stdout, so the table then stays away.
int deliver(report::Result& result, const Options& options, const Context& context);

}  // namespace doorbell::cli
