// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The cids of one submission queue whose commands have not been completed: a bit each, in kCidWords words.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::nvme {

inline constexpr u32 kCidWords = 65536 / 64;

[[nodiscard]] DOORBELL_INLINE bool is_outstanding(const u64* cids, u16 cid) {
  return (cids[cid / 64] >> (cid % 64) & 1) != 0;
}
DOORBELL_INLINE void set_outstanding(u64* cids, u16 cid, bool on) {
  const u64 bit = u64{1} << (cid % 64);
  if (on) cids[cid / 64] |= bit;
  else cids[cid / 64] &= ~bit;
}

}  // namespace doorbell::nvme
