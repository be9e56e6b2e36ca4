// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The facts about this build of the program.
#pragma once

#include <string>

namespace doorbell::report {

struct Tool {
  std::string name;
  std::string version;
  std::string git;        ///< `git describe --always --dirty`, or "unknown"
  std::string build;      ///< CMake's build type
  std::string compiler;   ///< "GNU 12.2.0"
  std::string sanitizer;  ///< "address", "thread" or empty
};

[[nodiscard]] const Tool& tool();

}  // namespace doorbell::report
