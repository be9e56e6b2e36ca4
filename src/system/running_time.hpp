// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How long a thread has waited while it ran. What it waits for may have been stopped together with it, and
// has had no time in which it was stopped.
#pragma once

#include <doorbell/config.hpp>

#include <algorithm>

namespace doorbell {

/// Counts the time between looks at the clock, each of which counts for at most kMostNs, so that who looks
/// seldom has a deadline too. Whoever waits looks more often than that. One thread.
class RunningTime {
 public:
  static constexpr u64 kMostNs = 50'000'000;

  explicit RunningTime(u64 now_ns) : last_ns_(now_ns) {}
  /// Nanoseconds that count so far.
  u64 look(u64 now_ns) {
    const u64 passed = now_ns > last_ns_ ? now_ns - last_ns_ : 0;
    last_ns_ = now_ns;
    away_ns_ += passed - std::min(passed, kMostNs);
    return ran_ns_ += std::min(passed, kMostNs);
  }
  /// Looks. Returns how much of the time since the look before does not count: for deadlines that are times
  /// of the clock.
  [[nodiscard]] u64 away_since_look(u64 now_ns) {
    const u64 before = away_ns_;
    look(now_ns);
    return away_ns_ - before;
  }
  /// As of the last look.
  [[nodiscard]] u64 ran_ns() const { return ran_ns_; }
  /// Nanoseconds that do not count.
  [[nodiscard]] u64 away_ns() const { return away_ns_; }

 private:
  u64 last_ns_;
  u64 ran_ns_ = 0, away_ns_ = 0;
};

}  // namespace doorbell
