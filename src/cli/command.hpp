// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The description of a subcommand.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option.hpp"
#include "measure/stop.hpp"

namespace doorbell::report {
struct Result;
}

namespace doorbell::cli {

struct Command;

/// The program that a command's code runs in, where that is not doorbell's own: nothing is printed.
struct Host {
  /// Gets the Result with its final exit code.
  std::function<void(const report::Result&)> take;
  /// RunHooks::progress; may be empty.
  std::function<void(double, const std::string&, u64)> progress = {};
};

/// The facts about its process that a running command needs to know.
struct Context {
  std::string program;            ///< "doorbell"
  std::vector<std::string> argv;  ///< as typed, including argv[0]
  bool colour = false;            ///< standard output is a terminal with colours, and the user wants them
  bool stderr_tty = false;        ///< standard error is a terminal whose line can be drawn again
  measure::StopFlag& stop;        ///< set by Ctrl-C; every long loop checks it
  const std::vector<Command>& commands;               ///< all of them, for help and the generated texts
  std::optional<std::vector<std::string>> rest = {};  ///< what follows the "--" of such a command
  const Host* host = nullptr;                         ///< null: the command line's own program
};

/// The requirement of an example that not every machine meets.
enum class Needs {
  nothing,
  file_system,    ///< makes a file in /tmp, which the kernel drives by io_uring
  gpu,            ///< a GPU, and kernels for it
  device,         ///< real hardware
  program,        ///< a program of others: QEMU, fio
  other_machine,  ///< another machine, or a second process
};

struct Example {
  std::string command;      ///< as typed after the prompt
  std::string text;         ///< one sentence on what the command does
  std::string output = {};  ///< sample output, for the manual
  int code = 0;             ///< the exit code
  Needs needs = Needs::nothing;
};

struct ExitStatus {
  int code;
  std::string_view meaning;
};

struct Command {
  std::string name = {};
  std::vector<std::string> means = {};  ///< words that are no command, for which it is suggested
  std::string summary = {};             ///< one line, no full stop
  std::string usage = {};               ///< the forms of the command line, where the options do not say them
  /// Another command's words may follow a "--": they go to Context::rest and are not parsed.
  bool takes_rest = false;
  /// Another program's words follow a "--", whatever they are, and go to Context::rest.
  bool takes_program = false;
  std::vector<std::string> description = {};  ///< paragraphs
  OptionTable options = {};
  std::vector<Example> examples = {};
  std::vector<ExitStatus> exits = {};  ///< empty: kExitStatuses
  /// Throws doorbell::Error for options that contradict each other; has no other effect. A sweep calls it for
  /// every cell before the first one starts.
  std::function<void(const Options&)> check = {};
  /// Of a command with --listen and --connect: what the listening end takes.
  std::vector<std::string> listening = {};
  /// Returns the exit code; may throw doorbell::Error.
  std::function<int(const Options&, Context&)> run = {};
  std::string group = "Measure";  ///< heading in `doorbell help`
  bool standalone = false;        ///< a program with its own name, not a word after "doorbell"
  int manual_section = 1;         ///< of the manual page
  bool stoppable = true;          ///< Ctrl-C sets Context::stop; if false, it ends the process
};

}  // namespace doorbell::cli
