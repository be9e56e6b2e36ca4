// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a subcommand is.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/option.hpp"
#include "measure/stop.hpp"

namespace doorbell::cli {

struct Command;

/// What a running command may know of its process.
struct Context {
  std::string program;            ///< "doorbell"
  std::vector<std::string> argv;  ///< as typed, argv[0] included
  bool colour = false;      ///< standard output is a terminal that shows colours, and the user wants them
  bool stderr_tty = false;  ///< standard error is a terminal whose line can be drawn anew
  measure::StopFlag& stop;  ///< set by Ctrl-C; every long loop looks at it
  const std::vector<Command>& commands;  ///< all of them, for help and the generated texts
};

/// What an example takes that not every machine has.
enum class Needs {
  nothing,
  file_system,    ///< it makes a file in /tmp, and the kernel drives it by io_uring
  gpu,            ///< with kernels for it
  device,         ///< of hardware
  program,        ///< somebody else's: QEMU, fio
  other_machine,  ///< or a second process
};

struct Example {
  std::string command;      ///< as typed after the prompt
  std::string text;         ///< what it does, one sentence
  std::string output = {};  ///< what it printed once, for the manual
  int code = 0;             ///< with which it ends
  Needs needs = Needs::nothing;
};

struct ExitStatus {
  int code;
  std::string_view meaning;
};

struct Command {
  std::string name = {};
  std::string summary = {};                   ///< one line, no full stop
  std::vector<std::string> description = {};  ///< paragraphs
  OptionTable options = {};
  std::vector<Example> examples = {};
  std::vector<ExitStatus> exits = {};  ///< empty: kExitStatuses
  /// Throws doorbell::Error for options that contradict each other; touches nothing. What a sweep asks for
  /// every cell before the first one starts.
  std::function<void(const Options&)> check = {};
  /// Returns the exit code; may throw doorbell::Error.
  std::function<int(const Options&, Context&)> run = {};
  std::string group = "Measure";  ///< heading in `doorbell help`
  bool standalone = false;        ///< a program of its own name, not a word after "doorbell"
  bool stoppable = true;          ///< Ctrl-C sets Context::stop; without it the signal ends the process
};

}  // namespace doorbell::cli
