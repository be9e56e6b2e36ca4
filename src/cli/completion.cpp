// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>

#include "cli/commands.hpp"
#include "cli/texts.hpp"

namespace doorbell::cli {

Command completion_command() {
  Command command;
  command.name = "completion";
  command.summary = "print a shell completion script";
  command.description = {"The script completes commands, options, the choices of options, and file names."};
  command.options.add({.name = "shell",
                       .metavar = "SHELL",
                       .choices = {"bash"},
                       .help = "the shell to print it for",
                       .operand = true,
                       .required = true});
  command.examples = {{"source <(doorbell completion bash)", "Complete in this shell."},
                      {"doorbell completion bash > ~/.local/share/bash-completion/completions/doorbell",
                       "Complete in every shell."}};
  command.run = [](const Options&, Context& context) {
    std::fputs(bash_completion(context.commands, all_programs()).c_str(), stdout);
    return 0;
  };
  command.group = "Documentation";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
