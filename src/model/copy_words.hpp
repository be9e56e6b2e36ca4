// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A copy that the lanes of a warp, or the threads of a block, share.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::model {

/// `first` and `step` are the caller's index and count among those that share the copy. Its stores become
/// visible with a later release; its loads read past a GPU's caches.
DOORBELL_HD inline void copy_words(u8* to, const u8* from, u64 bytes, u32 first, u32 step) {
  u64 wide = 0;
  if (((reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) & 15) == 0) {
    // 16-byte words; four loads in flight hide the time of the PCIe transfer.
    const auto* in = reinterpret_cast<const Word16*>(from);
    auto* out = reinterpret_cast<Word16*>(to);
    wide = bytes / 16;
    u64 i = first;
    for (; i + 3ull * step < wide; i += 4ull * step) {
      const Word16 a = load16(in + i);
      const Word16 b = load16(in + i + step);
      const Word16 c = load16(in + i + 2ull * step);
      const Word16 e = load16(in + i + 3ull * step);
      store16(out + i, a);
      store16(out + i + step, b);
      store16(out + i + 2ull * step, c);
      store16(out + i + 3ull * step, e);
    }
    for (; i < wide; i += step) store16(out + i, load16(in + i));
  }
  for (u64 i = wide * 16 + first; i < bytes; i += step) to[i] = from[i];
}

/// Loads `n` words to memory of the warp's own, word i from `from(i)`; they are there after a sync. Eight
/// loads of a lane are under way together: all of a burst's entries in one way to the memory and back.
template <class Warp, class From>
DOORBELL_INLINE void gather_words(const Warp& warp, Word16* to, u32 n, From from) {
  constexpr u32 kTogether = 8;
  Word16 words[kTogether];
  for (u32 base = warp.lane(); base < n; base += kTogether * Warp::size) {
    DOORBELL_UNROLL
    for (u32 k = 0; k < kTogether; ++k)
      if (base + k * Warp::size < n) words[k] = load16(from(base + k * Warp::size));
    DOORBELL_UNROLL
    for (u32 k = 0; k < kTogether; ++k)
      if (base + k * Warp::size < n) to[base + k * Warp::size] = words[k];
  }
}

}  // namespace doorbell::model
