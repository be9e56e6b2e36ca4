// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/sysfs.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <system_error>

namespace doorbell {

namespace fs = std::filesystem;

std::optional<std::string> read_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!in || !std::getline(in, line)) return {};
  line.erase(line.find_last_not_of(" \t\r\n") + 1);
  return line;
}

std::optional<i64> read_number(const fs::path& file) {
  const auto line = read_line(file);
  if (!line) return {};
  const bool hex = line->starts_with("0x");
  const char* const begin = line->data() + (hex ? 2 : 0);
  i64 number = 0;
  const auto parsed = std::from_chars(begin, line->data() + line->size(), number, hex ? 16 : 10);
  return parsed.ec == std::errc{} ? std::optional(number) : std::nullopt;
}

std::string link_name(const fs::path& link) {
  std::error_code failed;
  const fs::path target = fs::read_symlink(link, failed);
  return failed ? std::string() : target.filename().string();
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool present(const fs::path& path) {
  std::error_code failed;
  return fs::exists(path, failed);
}

std::string reason(int error) {
  return std::generic_category().message(error);
}

std::string errno_name(int error) {
  const char* const name = strerrorname_np(error);
  return name != nullptr ? name : "errno " + std::to_string(error);
}

}  // namespace doorbell
