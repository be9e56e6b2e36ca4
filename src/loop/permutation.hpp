// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A pseudo-random order of 0..n-1 that visits each index once and needs no memory, so that random
// writes never overlap and the reads that verify them can repeat the order.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/pattern.hpp>
#include <doorbell/warp.hpp>

namespace doorbell {

/// A four-round Feistel network over the smallest even number of bits that holds n, cycle-walked:
/// outputs at or past n are fed back in, fewer than four rounds of walking on average.
class Permutation {
 public:
  DOORBELL_INLINE Permutation(u64 n, u64 seed) : n_(n), seed_(seed) {
    const u32 bits = n <= 2 ? 2 : highest_bit(n - 1) + 1;
    half_ = (bits + 1) / 2;
    mask_ = (u64{1} << half_) - 1;
  }

  /// Where index i (i < n) goes.
  [[nodiscard]] DOORBELL_INLINE u64 operator()(u64 i) const {
    if (n_ <= 1) return 0;
    do {
      u64 left = i >> half_;
      u64 right = i & mask_;
      for (u64 round = 0; round < kRounds; ++round) {
        const u64 next = left ^ mixed(right, round);
        left = right;
        right = next;
      }
      i = (left << half_) | right;
    } while (i >= n_);
    return i;
  }

  /// The index that goes to `place` (place < n): the inverse.
  [[nodiscard]] DOORBELL_INLINE u64 index_of(u64 place) const {
    if (n_ <= 1) return 0;
    do {
      u64 left = place >> half_;
      u64 right = place & mask_;
      for (u64 round = kRounds; round-- > 0;) {
        const u64 before = right ^ mixed(left, round);
        right = left;
        left = before;
      }
      place = (left << half_) | right;
    } while (place >= n_);
    return place;
  }

 private:
  static constexpr u64 kRounds = 4;
  [[nodiscard]] DOORBELL_INLINE u64 mixed(u64 half, u64 round) const {
    return pattern::mix64(half ^ seed_ ^ (round << 56)) & mask_;
  }

  u64 n_;
  u64 seed_;
  u32 half_;
  u64 mask_;
};

}  // namespace doorbell
