// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/foreign_data.hpp"

#include <doorbell/pattern.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace doorbell::nvme {

bool holds_foreign_data(int fd, u64 bytes) {
  if (bytes == 0) return false;
  // A whole page at a page's start: what descriptors opened for direct I/O can read too.
  alignas(4096) std::array<u8, 4096> page{};
  if (pread(fd, page.data(), page.size(), 0) < 0) return true;
  std::array<u32, pattern::kUnitWords> unit{};
  std::memcpy(unit.data(), page.data(), sizeof unit);
  return unit[0] != pattern::kMagic && std::ranges::any_of(unit, [](u32 word) { return word != 0; });
}

}  // namespace doorbell::nvme
