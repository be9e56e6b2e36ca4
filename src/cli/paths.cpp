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

std::vector<const Command*> measuring_commands() {
  std::vector<const Command*> commands;
  for (const PathDescription& path : paths()) {
    commands.push_back(&path.command);
    for (const Command& tool : path.tools)
      if (tool.options.find("json") != nullptr && tool.check) commands.push_back(&tool);
  }
  return commands;
}

}  // namespace doorbell::cli
