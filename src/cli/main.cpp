// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <span>
#include <unistd.h>

#include "cli/commands.hpp"
#include "cli/compare_turns.hpp"
#include "cli/output.hpp"
#include "cli/parse.hpp"
#include "cli/path.hpp"
#include "cli/texts.hpp"
#include "options/setting.hpp"
#include "options/suggest.hpp"
#include "report/layout.hpp"
#include "report/verdict.hpp"
#include "system/open_files.hpp"
#include "system/sysfs.hpp"

namespace doorbell::cli {
namespace {

constexpr int kUsage = static_cast<int>(ExitCode::usage);

const Command* find(const std::vector<Command>& commands, std::string_view name) {
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

int unknown(const std::vector<Command>& commands, const std::string& word) {
  std::vector<std::string> names = {"help"};
  for (const Command& command : commands) names.push_back(command.name);
  std::string near;
  const bool option = word.starts_with('-');
  const auto meant = std::ranges::find_if(
      commands, [&](const Command& c) { return std::ranges::find(c.means, word) != c.means.end(); });
  if (meant != commands.end()) near = meant->name;
  else if (!option) near = nearest(word, names);
  fmt::print(stderr, "doorbell: unknown {} '{}'{}\n", option ? "option" : "command", word,
             near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  fmt::print(stderr, "hint: 'doorbell help' lists the commands\n");
  return kUsage;
}

int print_help(const Command& command, Help wanted) {
  std::fputs((wanted == Help::all ? command_help(command) : brief_help(command)).c_str(), stdout);
  return 0;
}

/// Leaves in Context::rest what is another command's.
std::vector<std::string> own_words(const Command& command, std::span<const std::string> arguments,
                                   Context& context) {
  const auto dashes = std::ranges::find(arguments, "--");
  std::error_code ignored;
  // An operand, a file whose name begins with a dash, may follow, too.
  if (command.takes_rest && dashes != arguments.end() && dashes + 1 != arguments.end() &&
      (command.options.operands().empty() || find(context.commands, dashes[1]) != nullptr ||
       !std::filesystem::exists(dashes[1], ignored))) {
    context.rest.emplace(dashes + 1, arguments.end());
    arguments = arguments.first(static_cast<std::size_t>(dashes - arguments.begin()));
  }
  return join_versus(arguments);
}

int run_command(const Command& command, std::span<const std::string> arguments, Context& context) {
  const std::string title = context.program + " " + command.name;
  if (const Help wanted = wanted_help(arguments); wanted != Help::none) return print_help(command, wanted);
  try {
    const std::vector<std::string> words = own_words(command, arguments, context);
    const Options options = parse(title, command.options, words);
    if (command.stoppable) context.stop.install();
    try {
      return asks_for_versus(options) ? run_versus(command, options, words, context)
                                      : command.run(options, context);
    } catch (const Error& e) {
      const int code = print_error(title + ": ", e);
      write_junit_of_error(options, command.name, e, code);
      return code;
    }
  } catch (const Error& e) {
    return print_error("", e);  // the message names the program itself
  }
}

int help(const std::vector<Command>& commands, std::span<const std::string> arguments) {
  if (arguments.empty() || arguments[0] == "help" || arguments[0] == "all" ||
      wanted_help(arguments) != Help::none) {
    std::fputs(program_help(commands).c_str(), stdout);
    return 0;
  }
  const std::string& word = arguments[0];
  const Command* const command = take_named(commands, &arguments);
  if (command == nullptr) return unknown(commands, word);
  const bool all = !arguments.empty() && arguments[0] == "all";
  if (arguments.size() > (all ? 1 : 0)) {
    fmt::print(stderr, "doorbell help: unexpected argument '{}'\n", arguments[all ? 1 : 0]);
    return kUsage;
  }
  return print_help(*command, all ? Help::all : Help::brief);
}

int dispatch(std::span<const std::string> words, Context& context) {
  const std::vector<Command>& commands = context.commands;
  if (words.empty()) {
    fmt::print(stderr, "Usage: doorbell COMMAND [OPTION]...\n\n");
    for (const Command& command : commands) fmt::print(stderr, "  {:<14}{}\n", command.name, command.summary);
    fmt::print(stderr, "\nStart with 'doorbell demo'; 'doorbell help COMMAND' says the rest.\n");
    return kUsage;
  }
  const std::string& word = words[0];
  const auto rest = words.subspan(1);
  if (word == "--help" || word == "-h" || word == "help") return help(commands, rest);
  if (word == "--version") return run_command(*find(commands, "version"), rest, context);
  const Command* const command = take_named(commands, &words);
  if (command == nullptr) return unknown(commands, word);
  return run_command(*command, words, context);
}

/// The program that argv[0] names; nullptr if it is the name of no such program.
const Program* program_called(std::string_view argv0) {
  const std::string_view name = argv0.substr(argv0.rfind('/') + 1);  // npos + 1 is 0
  for (const PathDescription& path : paths())
    for (const Program& program : path.programs)
      if (program.texts.name == name && program.run != nullptr) return &program;
  return nullptr;
}

/// True for a terminal that knows escape sequences, if the user wants colours (no-color.org).
bool terminal(int fd) {
  const char* const kind = std::getenv("TERM");
  return isatty(fd) == 1 && kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
}

bool wants_colour() {
  const char* const no = std::getenv("NO_COLOR");
  return no == nullptr || *no == '\0';
}

/// A full disk or a closed descriptor must not look like success.
int flush_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr, "doorbell: standard output: {}\n", reason(errno));
  return report::worse_of(code, kUsage);
}

}  // namespace
}  // namespace doorbell::cli

int main(int argc, char** argv) {
  using namespace doorbell;
  // Otherwise a file could get the number of a closed standard stream, and with it all printed text.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) (void)open("/dev/null", O_RDWR);
  // With this, a file beyond the size limit fails with EFBIG. By default the signal would end the process.
  (void)std::signal(SIGXFSZ, SIG_IGN);
  allow_all_open_files();
  Setting::name_by_options();
  try {
    const std::vector<cli::Command> commands = cli::all_commands();
    measure::StopFlag stop;
    cli::Context context{.program = "doorbell",
                         .argv = std::vector<std::string>(argv, argv + argc),
                         .colour = cli::terminal(STDOUT_FILENO) && cli::wants_colour(),
                         .stderr_tty = cli::terminal(STDERR_FILENO),
                         .stop = stop,
                         .commands = commands};
    const std::span<const std::string> words(context.argv);
    if (const cli::Program* program = words.empty() ? nullptr : cli::program_called(words[0]))
      return cli::flush_output(program->run(context));
    return cli::flush_output(cli::dispatch(words.empty() ? words : words.subspan(1), context));
  } catch (const std::exception& e) {
    fmt::print(stderr, "doorbell: {}\n", report::printable(e.what()));
    return cli::kUsage;
  }
}
