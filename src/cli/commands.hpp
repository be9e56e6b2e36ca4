// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The table of commands. A command that belongs to no path is a file, a line here and a line in commands.cpp;
// a path brings its own commands (path.hpp).
#pragma once

#include <algorithm>
#include <span>
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

/// The one of `all` that the words begin with, which are left without it; nullptr for none. Two words are one
/// name where there is such a one: "net link" is the command net-link.
template <class Named>
const Named* take_named(const std::vector<Named>& all, std::span<const std::string>* words) {
  const auto named = [&](const std::string& name) {
    const auto at = std::ranges::find(all, name, &Named::name);
    return at == all.end() ? nullptr : &*at;
  };
  if (words->empty()) return nullptr;
  std::size_t used = 2;
  const Named* found = words->size() > 1 ? named((*words)[0] + "-" + (*words)[1]) : nullptr;
  if (found == nullptr) {
    found = named((*words)[0]);
    used = 1;
  }
  if (found != nullptr) *words = words->subspan(used);
  return found;
}

/// All commands in the order of `doorbell help`, each with its --help option.
[[nodiscard]] std::vector<Command> all_commands();

/// The texts of the paths' programs with names of their own.
[[nodiscard]] std::vector<Command> all_programs();

}  // namespace doorbell::cli
