// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The table of commands. A command that belongs to no path is a file, a line here and a line in commands.cpp;
// a path brings its own commands (path.hpp).
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

Command demo_command();
Command sweep_command();
Command reproduce_command();
Command compare_command();
Command list_command();
Command backends_command();
Command doctor_command();
Command version_command();
/// `pages`: the commands that have a manual page, except man itself.
Command man_command(std::vector<std::string> pages);
Command completion_command();

/// All commands in the order of `doorbell help`, each with its --help option.
[[nodiscard]] std::vector<Command> all_commands();

/// The texts of the paths' programs with names of their own.
[[nodiscard]] std::vector<Command> all_programs();

}  // namespace doorbell::cli
