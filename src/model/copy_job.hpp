// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One copy, and which copies may not change places.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::model {

struct CopyJob {
  u8* to;
  const u8* from;
  u64 bytes;
};

[[nodiscard]] DOORBELL_INLINE bool overlap(const u8* a, u64 a_bytes, const u8* b, u64 b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/// True if one of them writes what the other one reads or writes: the later one waits for the earlier.
[[nodiscard]] DOORBELL_INLINE bool meet(const CopyJob& a, const CopyJob& b) {
  return overlap(a.to, a.bytes, b.to, b.bytes) || overlap(a.to, a.bytes, b.from, b.bytes) ||
         overlap(a.from, a.bytes, b.to, b.bytes);
}

}  // namespace doorbell::model
