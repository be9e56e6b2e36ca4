// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Another program as a child process, what it prints kept in memory.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "system/descriptor.hpp"

namespace doorbell {

class Child {
 public:
  /// Starts `arguments` (the first is found on PATH) with nothing on standard input. It inherits the
  /// descriptors in `give`, their numbers unchanged, and is in a process group of its own: Ctrl-C on the
  /// terminal is this program's to handle. The thread that starts it must outlive it: at the end of that
  /// thread, also where this process is killed, it gets SIGTERM. `file`, when given, is what is started under
  /// the name of the first argument. `network_namespace`: a descriptor of the one to start it in; -1: the
  /// thread's. Throws std::system_error when it cannot be started.
  explicit Child(const std::vector<std::string>& arguments, std::span<const int> give = {},
                 const std::string& file = {}, int network_namespace = -1);
  /// Ends it: waits for as long as wait() takes at most, then kills.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True once it has ended.
  [[nodiscard]] bool ended();
  /// Waits for its end; false when that takes longer. A signal that this process handles ends no wait.
  bool wait(double limit_s);
  void stop(int signal) const;
  /// Its exit code once it has ended, 128 and more for a signal.
  [[nodiscard]] int exit_code() const { return exit_code_; }
  /// The text that it has printed so far.
  [[nodiscard]] std::string output() const { return text_of(output_); }
  [[nodiscard]] std::string errors() const { return text_of(errors_); }

 private:
  static std::string text_of(const Descriptor& file);
  /// Sleeps for at most that long, less when it ends.
  void nap(u64 limit_ns) const;

  pid_t pid_ = -1;
  bool ended_ = false;
  int exit_code_ = -1;
  Descriptor end_;     // a pidfd, readable once it has ended
  Descriptor output_;  // memfds
  Descriptor errors_;
};

}  // namespace doorbell
