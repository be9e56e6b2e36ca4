// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Makes the option table's names available in namespace cli, and declares the options that every path has.
#pragma once

#include "options/option.hpp"

namespace doorbell::cli {

using namespace options;  // the command line uses the option table's names

/// The options that mean the same on every path.
void add_common_options(OptionTable& table);
/// --check-threads and --check-warps, for the paths whose runners have checkers.
void add_check_options(OptionTable& table);
/// --junit FILE, of all commands that measure or compare; output.hpp writes the file.
[[nodiscard]] Option junit_option();
/// --fault KIND=P[,...]
/// --units: how texts give payload a second.
[[nodiscard]] Option units_option(Into into = {});
[[nodiscard]] Option fault_option(std::string help, std::string group);

}  // namespace doorbell::cli
