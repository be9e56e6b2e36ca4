// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <cstdio>
#include <doorbell/error.hpp>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "cli/commands.hpp"
#include "cli/texts.hpp"

namespace doorbell::cli {
namespace {

void write_page(const std::filesystem::path& file, const std::string& page) {
  std::ofstream out(file, std::ios::trunc);
  out << page;
  out.close();
  if (!out) throw Error(file.string(), "cannot be written", "check that the folder exists and is yours");
}

int run_man(const Options& options, Context& context) {
  const std::vector<Command> programs = all_programs();
  const std::string& wanted = options.text("command");
  if (options.has("directory")) {
    const std::filesystem::path folder = options.text("directory");
    write_page(folder / "doorbell.1", program_man(context.commands, programs));
    for (const std::vector<Command>* all : {&context.commands, &programs})
      for (const Command& command : *all)
        write_page(folder / fmt::format("{}.{}", page_name(command), command.manual_section),
                   command_man(command));
    return 0;
  }
  std::string page;
  if (wanted.empty()) page = program_man(context.commands, programs);
  for (const std::vector<Command>* all : {&context.commands, &programs})
    for (const Command& command : *all)
      if (command.name == wanted) page = command_man(command);
  std::fputs(page.c_str(), stdout);
  return 0;
}

}  // namespace

Command man_command(std::vector<std::string> pages) {
  pages.emplace_back("man");
  Command command;
  command.name = "man";
  command.summary = "print a manual page in roff";
  command.description = {"Without an argument it prints doorbell(1), with one the page of that command."};
  command.options
      .add({.name = "command",
            .metavar = "COMMAND",
            .choices = std::move(pages),
            .help = "the command whose page to print",
            .operand = true})
      .group("Output")
      .add({.name = "directory", .kind = Kind::directory, .help = "write every page into DIR instead"});
  command.examples = {{"doorbell man nvme | man -l -", "Read the page of doorbell nvme."},
                      {"doorbell man --directory /usr/local/share/man/man1", "Install every page."}};
  command.run = run_man;
  command.group = "Documentation";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
