// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Decides when to look first for the completion of a single operation. A GPU reads host memory by a round
// trip over PCIe. A look that comes just too early costs that whole round trip, while waiting costs only the
// time by which the wait is too long. One thread or warp owns a PollPace; times are in ticks of its owner's
// clock.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell {

/// Finds the shortest wait after the doorbell with which the first look usually succeeds. A miss lengthens
/// the wait, each hit shortens it a little. The wait is never longer than one look takes: beyond that,
/// looking repeatedly costs no more.
class PollPace {
 public:
  /// Ticks to wait before the first look.
  [[nodiscard]] DOORBELL_INLINE u32 wait() const { return wait_; }
  /// Waits for so long.
  template <class Clock>
  DOORBELL_INLINE void await() const {
    const u64 from = Clock::now();
    while (Clock::now() - from < wait_) continue;
  }
  /// The first look took `ticks`, the same on all lanes.
  DOORBELL_INLINE void looked(bool found, u64 ticks) {
    if (found) hit();
    else missed(ticks);
  }
  /// The first look found the completion.
  DOORBELL_INLINE void hit() { wait_ -= wait_ < step_ / kHitsAMiss ? wait_ : step_ / kHitsAMiss; }
  /// The first look took `ticks` and found nothing.
  DOORBELL_INLINE void missed(u64 ticks) {
    const u32 look = ticks < kLongest ? static_cast<u32>(ticks) : kLongest;
    step_ = look / kStepsALook;
    wait_ = wait_ + step_ < look ? wait_ + step_ : look;
  }

 private:
  static constexpr u32 kStepsALook = 16;
  static constexpr u32 kHitsAMiss = 16;      ///< in balance, one first look in so many comes too early
  static constexpr u32 kLongest = 1u << 20;  ///< ticks; a look that took longer was interrupted
  u32 wait_ = 0;
  u32 step_ = 0;
};

}  // namespace doorbell
