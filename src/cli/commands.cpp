// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/commands.hpp"

#include "cxi/cli/gpu_loopback_bw/options.hpp"

namespace doorbell::cli {

std::vector<Command> all_commands() {
  std::vector<Command> commands = {
      demo_command(),    nvme_command(),    rdma_command(),       cxi_command(),  sweep_command(),
      compare_command(), list_command(),    backends_command(),   bind_command(), unbind_command(),
      doctor_command(),  version_command(), completion_command(),
  };
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
  return {cxi_gpu_loopback_bw_command()};
}

}  // namespace doorbell::cli
