// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/available_memory.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {

namespace fs = std::filesystem;

std::optional<u64> from_meminfo(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("MemAvailable:")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    u64 kib = 0;
    if (words >> kib) return kib * 1024;
  }
  return std::nullopt;
}

/// The memory that the tightest of the control groups above this process leaves (version 2).
std::optional<u64> from_groups(const fs::path& root) {
  const auto own = read_line(root / "proc/self/cgroup");
  if (!own || !own->starts_with("0::/")) return std::nullopt;
  const fs::path top = root / "sys/fs/cgroup";
  std::optional<u64> least;
  for (fs::path group = top / own->substr(4);; group = group.parent_path()) {
    const auto limit = read_number(group / "memory.max");  // "max", which is no number: no limit
    const auto used = read_number(group / "memory.current");
    if (limit && used) {
      const u64 left = *limit > *used ? static_cast<u64>(*limit - *used) : 0;
      least = std::min(least.value_or(left), left);
    }
    if (group == top || !group.has_relative_path() || group.string().size() <= top.string().size()) break;
  }
  return least;
}

std::string in_gb(u64 bytes) {
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

std::optional<u64> available_memory(const fs::path& root) {
  const auto machine = from_meminfo(root);
  const auto group = from_groups(root);
  if (machine && group) return std::min(*machine, *group);
  return machine ? machine : group;
}

void require_memory(u64 bytes, const std::string& what, const std::string& sum) {
  // Little is always tried: what the machine has is an estimate.
  constexpr u64 kUnasked = u64{64} << 20;
  if (bytes <= kUnasked) return;
  const auto available = available_memory();
  if (!available || bytes <= *available) return;
  throw Error(
      what,
      fmt::format("they need {} of memory ({}), and {} are available", in_gb(bytes), sum, in_gb(*available)),
      "ask for fewer queues, less in flight or smaller operations");
}

}  // namespace doorbell
