// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The contents of a file, for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace doorbell::test {

/// All bytes of a regular file, read at once: a sanitizer takes a second for a few MiB read one by one.
inline std::string contents(const std::string& path) {
  std::string bytes(std::filesystem::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace doorbell::test
