// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstdio>

#include "cli/commands.hpp"
#include "cli/texts.hpp"
#include "report/layout.hpp"

namespace doorbell::cli {
namespace {

/// `asked`: "nvme controller" or "nvme --controller". Nullptr for what is no option of a command or program.
const Option* asked_option(const std::vector<Command>& commands, const std::string& asked) {
  const std::size_t space = asked.find(' ');
  if (space == std::string::npos) return nullptr;
  const std::string_view word = std::string_view(asked).substr(space + 1);
  for (const Command& command : commands) {
    if (command.name != asked.substr(0, space)) continue;
    if (word.size() == 2 && word[0] == '-') return command.options.find_letter(word[1]);
    return command.options.find(word.starts_with("--") ? word.substr(2) : word);
  }
  return nullptr;
}

/// Prints nothing for what it does not know: its reader is a script in the middle of somebody's typing.
void print_values(std::vector<Command> commands, const std::string& asked) {
  std::ranges::move(all_programs(), std::back_inserter(commands));
  const Option* const o = asked_option(commands, asked);
  if (o == nullptr) return;
  std::vector<std::string> words = o->choices;
  try {
    if (o->offers) std::ranges::move(o->offers(), std::back_inserter(words));
  } catch (const std::exception&) {
    // A machine that cannot be read offers nothing.
  }
  if (o->kind == Kind::path) words.emplace_back("*");
  // A shell puts quotes around a word, but cannot give it with a control character in it.
  for (const std::string& word : words)
    if (report::printable(word) == word) std::puts(word.c_str());
}

}  // namespace

Command completion_command() {
  Command command;
  command.name = "completion";
  command.summary = "print a shell completion script";
  command.description = {
      "The script completes commands, options, their choices, file names, and what is on this machine: devices, "
      "links, plans. For the latter it runs this program with --values, which opens no device."};
  command.options.add({.name = "shell",
                       .metavar = "SHELL",
                       .choices = {"bash", "zsh", "fish"},
                       .help = "the shell to print it for",
                       .operand = true,
                       .required = true});
  command.options.group("For the scripts")
      .add(
          {.name = "values",
           .metavar = "'COMMAND OPTION'",
           .help =
               "print the values to offer for an option, 'nvme --controller', a line each; a '*' at the end of one "
               "stands for a file's name"});
  command.examples = {
      {"source <(doorbell completion bash)", "Complete in this shell."},
      {"doorbell completion bash > ~/.local/share/bash-completion/completions/doorbell",
       "Complete in every bash."},
      {"doorbell completion zsh > ~/.zfunc/_doorbell",
       "In every zsh; ~/.zfunc is in fpath before compinit runs."},
      {"doorbell completion fish > ~/.config/fish/completions/doorbell.fish", "In every fish."}};
  command.run = [](const Options& options, Context& context) {
    if (options.has("values")) {
      print_values(context.commands, options.text("values"));
      return 0;
    }
    const std::string& shell = options.text("shell");
    const auto script = shell == "zsh" ? zsh_completion : shell == "fish" ? fish_completion : bash_completion;
    std::fputs(script(context.commands, all_programs()).c_str(), stdout);
    return 0;
  };
  command.group = "Documentation";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
