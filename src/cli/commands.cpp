// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/commands.hpp"

#include "cli/path.hpp"

namespace doorbell::cli {

std::vector<Command> all_commands() {
  std::vector<Command> commands = {demo_command()};
  for (const PathDescription& path : paths()) commands.push_back(path.command);
  std::ranges::move(std::vector<Command>{sweep_command(), reproduce_command(), compare_command(),
                                         list_command(), backends_command()},
                    std::back_inserter(commands));
  for (const PathDescription& path : paths())
    commands.insert(commands.end(), path.tools.begin(), path.tools.end());
  std::ranges::move(std::vector<Command>{doctor_command(), version_command(), completion_command()},
                    std::back_inserter(commands));
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.name);
  for (const Command& program : all_programs()) names.push_back(program.name);
  commands.push_back(man_command(std::move(names)));
  for (Command& command : commands) {
    const auto groups = command.options.groups();
    command.options.add({.name = "help",
                         .letter = 'h',
                         .kind = Kind::flag,
                         .help = "print this help",
                         .group = groups.empty() ? "Options" : groups.back(),
                         .echoed = false});
  }
  return commands;
}

std::vector<Command> all_programs() {
  std::vector<Command> texts;
  for (const PathDescription& path : paths())
    for (const Program& program : path.programs) texts.push_back(program.texts);
  return texts;
}

}  // namespace doorbell::cli
