// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The launch page of a command queue from the device's side. The page is memory and shows only the last
// store, so the device replaces what it took by words that no initiator stores.
#pragma once

#include <doorbell/cxi/types.hpp>

namespace doorbell::cxi {

inline constexpr u32 kWindow64 = 1024, kWindowAligned = 2048, kWindowUnaligned = 3072;
inline constexpr u32 kWindowSlots = 16;
inline constexpr u32 kSlotWords = kSlotBytes / 8;

/// Stores of 2, 4 and 8 bytes change this word, unless their value is 0, which is never a write pointer.
inline constexpr u64 kNoDoorbell = 0xdb00'db00'db00'0000;
/// As a command's first word, this value has an unknown opcode.
inline constexpr u64 kUnwritten = 0x5ca1'ab1e'b0de'd0ff;
[[nodiscard]] DOORBELL_INLINE u64* doorbell_of(u8* launch) {
  return reinterpret_cast<u64*>(launch);
}
[[nodiscard]] DOORBELL_INLINE u64* window_of(u8* launch, u32 base, u32 slot) {
  return reinterpret_cast<u64*>(launch + base + slot % kWindowSlots * kSlotBytes);
}

DOORBELL_HD inline void clear_launch_page(u8* launch) {
  auto* const words = reinterpret_cast<u64*>(launch);
  for (u32 k = 0; k < kLaunchBytes / 8; ++k) store64_relaxed(words + k, k == 0 ? kNoDoorbell : kUnwritten);
}

/// Takes `slots` slots from a window when all of them are written. `torn_since_ns`: the time since which some
/// words have been missing. After `slow_writer_ns`, a word that equals kUnwritten counts as written.
template <class Parts>
[[nodiscard]] DOORBELL_GPU_NOINLINE bool take_words(u64* window, u32 slots, u64 slow_writer_ns,
                                                    u64& torn_since_ns, u64* out) {
  if (load64_relaxed(window) == kUnwritten) return false;
  bool whole = true;
  for (u32 k = 0; k < slots * kSlotWords; ++k) {
    // The initiator stored each word with release: its earlier stores are visible after this load.
    out[k] = load64_acquire(window + k);
    whole = whole && out[k] != kUnwritten;
  }
  if (!whole) {
    const u64 now = Parts::wall_ns();
    if (torn_since_ns == 0) torn_since_ns = now;
    if (now - torn_since_ns < slow_writer_ns) return false;
  }
  torn_since_ns = 0;
  for (u32 k = 0; k < slots * kSlotWords; ++k) store64_relaxed(window + k, kUnwritten);
  return true;
}

}  // namespace doorbell::cxi
