// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From a command line to Options.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/option.hpp"

namespace doorbell::cli {

/// Parses the arguments that follow the command's name. `title` ("doorbell nvme") begins every message.
///
/// Accepts --name VALUE, --name=VALUE, -x VALUE, -xVALUE and operands; "--" ends the options. Throws
/// doorbell::Error (exit code 1) for anything the table does not have, an option given twice, a value
/// that is missing or out of range, and operands too many or too few.
[[nodiscard]] Options parse(const std::string& title, const OptionTable& table,
                            std::span<const std::string> arguments);

/// The arguments ask for help: -h or --help before any "--".
[[nodiscard]] bool wants_help(std::span<const std::string> arguments);

}  // namespace doorbell::cli
