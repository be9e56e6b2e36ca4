// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Commands of the form "doorbell run NAME [OPTION]... -- PROGRAM [ARGUMENT]...", which start a program of
// others in surroundings of doorbell's.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "system/descriptor.hpp"

namespace doorbell::cli {

/// Such a command, without its options, its description and its work: "run-NAME".
[[nodiscard]] Command program_command(const std::string& name, const std::string& summary);

/// The words behind the "--". Throws Error if there are none.
[[nodiscard]] const std::vector<std::string>& program_words(const Context& context);

/// `text` before what an environment variable that lists paths has now.
[[nodiscard]] std::string in_front_of(const char* variable, const std::string& text);

/// Makes this process the program, so that its signals and its exit code are its own. Comes back by an Error
/// alone.
[[noreturn]] void become_program(const std::vector<std::string>& words);

/// The program in place of this one: its terminal, its standard streams, its signals, its exit code.
class ProgramRun {
 public:
  /// Makes the process, which waits for begin(), then calls `prepare`, which may throw Error, and becomes the
  /// program. This process has no other threads yet. Until the end SIGINT, SIGTERM, SIGHUP and SIGQUIT are
  /// the program's: they are blocked here, and in threads that are made from now on. Throws Error.
  ProgramRun(const std::vector<std::string>& words, const std::function<void()>& prepare);
  /// Ends a program that has not begun; otherwise it is waited for.
  ~ProgramRun();
  ProgramRun(const ProgramRun&) = delete;
  ProgramRun& operator=(const ProgramRun&) = delete;

  /// Throws Error if it does not become the program.
  void begin();
  /// Waits for its end. Its exit code, or 128 and the number of the signal that has ended it.
  [[nodiscard]] int wait();

 private:
  [[noreturn]] void become(const std::vector<std::string>& words, const std::function<void()>& prepare,
                           int go, int failure) const;

  pid_t parent_;
  pid_t pid_ = -1;
  int code_ = -1;      // once it has ended
  sigset_t before_{};  // signals that this process had blocked
  Descriptor go_;      // a byte tells it to begin
  Descriptor failed_;  // its Error, or its end when the program begins
};

}  // namespace doorbell::cli
