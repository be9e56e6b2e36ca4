// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Log-linear latency buckets: 64 sub-buckets an octave.
//
// Error bound: a value reported as its bucket's midpoint is at most 1/128 (0.79 %) away from the
// value recorded; below 128 ns every nanosecond has its own bucket and the value is exact.
// Range: values of 2^34 ns (17 s) and more share the last bucket; exact min and max are kept separately.
// Memory: 1857 counters of 8 bytes, 14.5 KiB, one set per thread or GPU block, merged by addition.
#pragma once

#include <doorbell/warp.hpp>

namespace doorbell::histogram {

inline constexpr u32 kSubBits = 6;           ///< log2 of the sub-buckets per octave
inline constexpr u32 kSub = 1u << kSubBits;  ///< 64
inline constexpr u32 kMaxOctave = 34;        ///< values from 2^34 on overflow
inline constexpr u32 kOverflow = (kMaxOctave - kSubBits + 1) * kSub;
inline constexpr u32 kBuckets = kOverflow + 1;
static_assert(kBuckets == 1857);

/// The bucket that counts `ns`.
DOORBELL_INLINE u32 bucket_of(u64 ns) {
  if (ns < 2 * kSub) return static_cast<u32>(ns);
  const u32 msb = highest_bit(ns);
  if (msb >= kMaxOctave) return kOverflow;
  const u32 shift = msb - kSubBits;
  return (shift + 1) * kSub + (static_cast<u32>(ns >> shift) & (kSub - 1));
}

/// The smallest value that falls into bucket `i`, in ns.
DOORBELL_INLINE u64 lower_ns(u32 i) {
  if (i < 2 * kSub) return i;
  const u32 shift = (i >> kSubBits) - 1;
  return static_cast<u64>(kSub + (i & (kSub - 1))) << shift;
}

/// How many integer values share bucket `i` (the overflow bucket has no upper end).
DOORBELL_INLINE u64 width_ns(u32 i) {
  return i < 2 * kSub ? 1 : u64{1} << ((i >> kSubBits) - 1);
}

/// Counts one more in a bucket that the lanes of a warp share.
template <class Warp>
DOORBELL_INLINE void increment(u64* counter) {
  if constexpr (Warp::size == 1) {
    ++*counter;
  } else {
#if defined(DOORBELL_ON_GPU)
    // Two 32-bit additions, the second once in 2^32: shared memory has no 64-bit one, and a loop of
    // compare-and-swaps over a bucket that all lanes hit costs more than everything else here.
    auto* half = reinterpret_cast<u32*>(counter);
    if (atomicAdd(half, 1u) == ~0u) atomicAdd(half + 1, 1u);
#else
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
#endif
  }
}

}  // namespace doorbell::histogram
