// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The times that a loop reports, from two clocks that do not agree.

#include <gtest/gtest.h>

#include "loop/loop_guard.hpp"
#include "measure/runner.hpp"

namespace doorbell {
namespace {

/// A fast counter, and a shared clock that has not moved yet.
struct CoarseClock {
  static u64 now() { return ticks += 1000; }
  static u64 wall_ns() { return 5000; }
  static inline u64 ticks = 0;
};

TEST(LoopGuard, ALoopThatDidNothingEndsWhenItBegins) {
  LoopGuard<OneLane, CoarseClock, 16> guard;
  guard.begin(OneLane{});
  OpStats stats;
  guard.report(PhaseLimits{}, stats);
  EXPECT_EQ(stats.begin_ns, 5000u);
  EXPECT_EQ(stats.end_ns, 5000u);
}

/// A counter of nanoseconds, and a shared clock that is faster or slower by `drift` parts of 1000.
struct DriftingClock {
  static u64 now() { return ticks; }
  static u64 wall_ns() { return static_cast<u64>(static_cast<i64>(ticks) / 1000 * (1000 + drift)); }
  static inline u64 ticks = 0;
  static inline i64 drift = 0;
};

struct EndlessPhase : PhaseLimits {
  [[nodiscard]] StopReason lost() const { return StopReason::done; }
};

/// The report of a phase whose one operation took `took`, and which then waits a second for one that is lost.
OpStats one_done_one_lost(u64 took) {
  const OneLane lane;
  LoopGuard<OneLane, DriftingClock, 16> guard;
  EndlessPhase phase;
  phase.check_ticks = 100'000;
  DriftingClock::ticks = 1'000'000'000'000;
  guard.begin(lane);
  DriftingClock::ticks += took;
  guard.found();
  guard.done_at(DriftingClock::ticks);
  for (u32 i = 0; i < 10'000; ++i) {
    DriftingClock::ticks += phase.check_ticks;
    guard.missed();
    guard.read(lane);
    if (guard.due(phase)) (void)guard.look(lane, phase);
  }
  OpStats stats;
  guard.report(phase, stats);
  stats.posted = 2;
  stats.succeeded = 1;
  return stats;
}

TEST(LoopGuard, AWaitForWhatIsLostDoesNotChangeTheTimeOfWhatCame) {
  for (const i64 drift : {-10, -1, 0, 1, 10})
    for (const u64 took : {100u, 60'000u, 50'000'000u}) {
      SCOPED_TRACE(testing::Message() << "drift " << drift << ", took " << took);
      DriftingClock::drift = drift;
      const OpStats stats = one_done_one_lost(took);
      measure::PhaseOutcome out;
      out.add(stats, std::vector<u64>(histogram::kBuckets));
      const double took_s = static_cast<double>(took) * 1e-9;
      EXPECT_GE(out.elapsed_s, took_s * (1 - 1e-9)) << "shorter than an operation of it";
      EXPECT_LE(out.elapsed_s, took_s * 1.02 + 5e-6);
    }
}

}  // namespace
}  // namespace doorbell
