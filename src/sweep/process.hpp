// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One run of doorbell in a process of its own: started, watched, and its Result read.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "system/child.hpp"

namespace doorbell::sweep {

/// Time for a run to stop and report.
inline constexpr double kDrain_s = 15;

/// A file of its own for a run's Result, removed at the end, also after an exception.
class Scratch {
 public:
  explicit Scratch(std::string path);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// How a run ended; the members of Record.
struct Outcome {
  int exit_code = 0;
  double wall_s = 0;
  std::string ended = "exit";
  std::string error;
  nlohmann::ordered_json result;
};

struct ProcessWatch {
  std::function<bool()> stop;        ///< true: the run shall stop and report
  std::function<void(double)> tick;  ///< gets the run time so far
};

/// Runs `doorbell WORDS --json=FILE --quiet` by `program`; without a file the Result is kept in memory.
/// Throws doorbell::Error if it cannot be started.
[[nodiscard]] Outcome run_process(const std::vector<std::string>& words, const std::string& file,
                                  double limit_s, const std::string& program, const ProcessWatch& watch);

/// Asks a child to stop, and kills it if it does not. Its end may be out of reach: in the kernel.
void end_child(Child& child);

/// Its exit code, 128 + SIGKILL for one that did not end.
[[nodiscard]] int code_of(const Child& child);

/// The end of what a program has printed, without trailing blanks.
[[nodiscard]] std::string last_of(std::string text);

}  // namespace doorbell::sweep
