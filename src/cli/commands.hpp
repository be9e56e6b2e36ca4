// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of subcommands. A new one is a file, a line here and a line in commands.cpp.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"

namespace doorbell::cli {

Command demo_command();
Command nvme_command();
Command rdma_command();
Command cxi_command();
Command sweep_command();
Command compare_command();
Command bind_command();
Command unbind_command();
Command list_command();
Command backends_command();
Command doctor_command();
Command version_command();
/// `pages`: the commands that have a manual page, besides man itself.
Command man_command(std::vector<std::string> pages);
Command completion_command();

/// In the order of `doorbell help`; each with its --help option.
[[nodiscard]] std::vector<Command> all_commands();

/// Programs of their own names, as which the same binary runs when it is called so. Their texts; main() knows
/// what runs them.
[[nodiscard]] std::vector<Command> all_programs();
[[nodiscard]] int run_cxi_gpu_loopback_bw(Context& context);

}  // namespace doorbell::cli
