// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/shipped.hpp"

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

}  // namespace doorbell::cli
