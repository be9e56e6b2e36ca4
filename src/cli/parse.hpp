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
/// Accepts --name VALUE, --name=VALUE, -x VALUE, -xVALUE and operands; "--" ends the options. Throws
/// doorbell::Error (exit code 1) for an option that is not in the table or is given twice, for a value that
/// is missing or out of range, and for too many or too few operands.
[[nodiscard]] Options parse(const std::string& title, const OptionTable& table,
                            std::span<const std::string> arguments);

/// True if the arguments ask for help: -h or --help before any "--".
[[nodiscard]] bool wants_help(std::span<const std::string> arguments);

}  // namespace doorbell::cli
