// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Converts a command line to Options.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/option.hpp"

namespace doorbell::cli {

/// Parses the arguments that follow the command's name. Messages begin with `title` ("doorbell nvme").
///
/// Accepts --name VALUE, --name=VALUE, -x VALUE, -xVALUE, operands, and one bare word for the option that
/// takes it; "--" ends the options. '_' in a name counts as '-'. Throws doorbell::Error (exit code 1) for an
/// option that is not in the table or is given twice, for a value that is missing or out of range, and for
/// too many or too few operands.
[[nodiscard]] Options parse(const std::string& title, const OptionTable& table,
                            std::span<const std::string> arguments);

/// The help that arguments before any "--" ask for: -h or --help, or that with "all" behind it.
enum class Help { none, brief, all };
[[nodiscard]] Help wanted_help(std::span<const std::string> arguments);

}  // namespace doorbell::cli
