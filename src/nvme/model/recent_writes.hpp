// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which blocks were written last: good data of another address, for Fault::misplace.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::nvme {

inline constexpr u32 kRecentWrites = 8;

/// Starts as zeros.
struct RecentWrites {
  u64 lba[kRecentWrites];
  u32 blocks[kRecentWrites];
  u32 next;

  DOORBELL_INLINE void add(u64 at, u32 n) {
    lba[next % kRecentWrites] = at;
    blocks[next % kRecentWrites] = n;
    ++next;
  }
  /// Where else `n` blocks can be read than at `at`, if possible blocks that were written, so that they carry
  /// that address; `at` itself if there is no such place. `total`: blocks of the namespace.
  [[nodiscard]] DOORBELL_HD u64 other(u64 at, u32 n, u64 total) const {
    for (u32 i = 0; i < kRecentWrites; ++i)
      if (blocks[i] == n && lba[i] != at) return lba[i];
    if (at >= n) return at - n;
    return at + 2ull * n <= total ? at + n : at;
  }
};

}  // namespace doorbell::nvme
