// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/path.hpp"

namespace doorbell::cli {

// path_table.inc holds one line DOORBELL_PATH(name) for each path of CMakeLists.txt.

#define DOORBELL_PATH(name) PathDescription name##_path();
#include "path_table.inc"
#undef DOORBELL_PATH

const std::vector<PathDescription>& paths() {
  static const std::vector<PathDescription> all = {
#define DOORBELL_PATH(name) name##_path(),
#include "path_table.inc"
#undef DOORBELL_PATH
  };
  return all;
}

}  // namespace doorbell::cli
