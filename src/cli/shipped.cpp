// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/shipped.hpp"

#include <doorbell/error.hpp>

#include <system_error>

namespace doorbell::cli {

namespace fs = std::filesystem;

std::filesystem::path shipped(const std::string& name) {
  std::error_code ignored;
  const fs::path exe = fs::read_symlink("/proc/self/exe", ignored);
  for (const char* at : {"../share/doorbell", "../.."}) {
    const fs::path there = exe.parent_path() / at / name;
    if (fs::exists(there, ignored)) return fs::canonical(there, ignored);
  }
  return {};
}

std::filesystem::path shipped_libraries(const std::string& name, const std::string& library,
                                        const std::string& hint) {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = program / ".." / DOORBELL_PLUGIN_FOLDER / name;
  for (const fs::path& at : {program / "../lib" / name, installed, program / "../lib/doorbell" / name})
    if (fs::exists(at / library, ignored)) return fs::canonical(at, ignored);
  throw Error(library, "doorbell's own is not beside this program", hint + "looked in " + installed.string(),
              ExitCode::absent);
}

}  // namespace doorbell::cli
