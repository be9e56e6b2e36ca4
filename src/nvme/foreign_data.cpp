// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/foreign_data.hpp"

#include <doorbell/pattern.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace doorbell::nvme {

namespace {
/// File systems, volume managers and partition tables mark a disk within its first 64 KiB and a bit (btrfs).
constexpr u64 kLookedAt = 1 << 20;

bool is_foreign(const u8* unit) {
  std::array<u32, pattern::kUnitWords> words{};
  std::memcpy(words.data(), unit, sizeof words);
  return words[0] != pattern::kMagic && std::ranges::any_of(words, [](u32 word) { return word != 0; });
}
}  // namespace

bool holds_foreign_data(int fd, u64 bytes) {
  // Whole pages at a page's start: what descriptors opened for direct I/O can read too.
  alignas(4096) std::array<u8, 4096> page{};
  for (u64 at = 0; at < std::min(bytes, kLookedAt); at += page.size()) {
    page.fill(0);
    if (pread(fd, page.data(), page.size(), static_cast<off_t>(at)) < 0) return true;
    for (u64 u = 0; u < page.size(); u += pattern::kUnitWords * sizeof(u32))
      if (is_foreign(page.data() + u)) return true;
  }
  return false;
}

}  // namespace doorbell::nvme
