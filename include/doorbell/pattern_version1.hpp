// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Version 1 of the test pattern, which earlier doorbells wrote: made only to tell a unit of it from a damaged
// one. Its header is that of version 2 with another magic; what follows is one walk of the LFSR, a step a
// word.
#pragma once

#include <doorbell/pattern_unit.hpp>

namespace doorbell::pattern::version1 {

inline constexpr u32 kMagic = 0x314c4244;  // "DBL1"

DOORBELL_INLINE u32 start_of(const Identity& id) {
  const u64 h = mix64(id.seed ^ mix64(id.address ^ mix64(id.sequence)));
  const u32 s = static_cast<u32>(h ^ (h >> 32));
  return s != 0 ? s : 1;
}

DOORBELL_INLINE void make_unit(u32* out, const Identity& id) {
  const u32 start = version1::start_of(id);
  const u64 header[] = {u64{start} << 32 | kMagic, id.seed, id.address, id.sequence};
  for (u32 w = 0; w < kHeaderWords; ++w) out[w] = static_cast<u32>(header[w / 2] >> (w % 2 * 32));
  u32 s = start;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w < kUnitWords; ++w) out[w] = s = step(s);
}

/// A whole and undamaged unit of version 1, whatever it claims to be.
DOORBELL_NOINLINE bool is_unit(const u32* unit) {
  if (unit[0] != kMagic) return false;
  u32 s = version1::start_of(claimed(unit));
  u32 wrong = unit[1] ^ s;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w < kUnitWords; ++w) {
    s = step(s);
    wrong |= unit[w] ^ s;
  }
  return wrong == 0;
}

/// True for a damaged unit, whatever its damage has left of the header: half of its walk is left in one
/// piece. (Tables of masks are shorter walks.) One lane.
DOORBELL_INLINE bool is_remnant(const u32* unit) {
  constexpr u32 kSteps = (kUnitWords - kHeaderWords) / 2 - 1;
  u32 steps = 0;
  DOORBELL_NO_UNROLL
  for (u32 w = kHeaderWords; w + 1 < kUnitWords; ++w) {
    steps = unit[w] != 0 && unit[w + 1] == step(unit[w]) ? steps + 1 : 0;
    if (steps == kSteps) return true;
  }
  return false;
}

}  // namespace doorbell::pattern::version1
