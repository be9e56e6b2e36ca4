// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// When CPU threads start the clocks of their queues, with loops that note what is asked of them.

#include "measure/cpu_runner.hpp"

#include <gtest/gtest.h>

#include <atomic>

namespace doorbell::measure {
namespace {

struct NotedPhase : PhaseLimits {
  bool verify = false;
  bool drain = false;
  [[nodiscard]] StopReason lost() const { return StopReason::done; }
};

/// Counts of what all loops of a phase have done.
struct Notes {
  u32 queues = 0;
  std::atomic<u32> made{0};       ///< queues whose data is made
  std::atomic<u32> asked{0};      ///< whether it is
  std::atomic<u32> started{0};    ///< clocks
  std::atomic<u32> too_early{0};  ///< clocks that were started, or steps made, before all data was made
};
struct NotedItem {
  Notes* notes = nullptr;
};
struct NotedScratch {
  u64* bins = nullptr;
};
struct NotedState {};

/// A loop whose data others make: it is found made when asked a second time.
class NotingLoop {
 public:
  NotingLoop(const OneLane&, const NotedPhase&, const NotedItem& item, const NotedState&, const NotedScratch&,
             OpStats*)
      : notes_(item.notes) {}
  bool made(const OneLane&) {
    ++notes_->asked;
    if (asked_++ == 1) ++notes_->made;
    return asked_ > 1;
  }
  void start_clock(const OneLane&) {
    ++notes_->started;
    check();
  }
  bool step(const OneLane&) {
    check();
    return false;
  }
  void finish(const OneLane&) {}
  [[nodiscard]] NotedState state() const { return {}; }
  [[nodiscard]] u32 idle() const { return 0; }
  [[nodiscard]] u64 completed() const { return 0; }
  [[nodiscard]] OpCounters counters() const { return {}; }

 private:
  void check() {
    if (notes_->made < notes_->queues) ++notes_->too_early;
  }
  Notes* notes_;
  u32 asked_ = 0;
};

struct NotingWork {
  using Phase = NotedPhase;
  using Item = NotedItem;
  using State = NotedState;
  using Scratch = NotedScratch;
  template <bool>
  using Loop = NotingLoop;
  static u64 scratch_bytes(u32) { return 8 * histogram::kBuckets; }
  static Scratch carve(void* memory, u32) { return {static_cast<u64*>(memory)}; }
  static u32 kept_words(u32) { return 0; }
};

TEST(CpuRunner, StartsNoClockBeforeTheDataOfAllQueuesIsMade) {
  for (const u32 threads : {1u, 2u, 3u}) {
    Notes notes;
    notes.queues = 7;
    const std::vector<NotedState> states(notes.queues);
    const std::vector<NotedItem> items(notes.queues, NotedItem{&notes});
    NotedPhase phase;
    phase.timeout_ticks = HostClock::ticks(600);
    CpuRunner<NotingWork> runner(threads, 0, 1, states);
    const PhaseOutcome out = runner.run(phase, items, false, {});
    EXPECT_EQ(out.queues.size(), notes.queues);
    EXPECT_EQ(notes.started, notes.queues) << threads;
    EXPECT_EQ(notes.made, notes.queues) << threads;
    EXPECT_EQ(notes.too_early, 0u) << threads;
  }
}

TEST(CpuRunner, WaitsForDataNoLongerThanForAnOperation) {
  Notes notes;
  const std::vector<NotedState> states(1);
  const std::vector<NotedItem> items(1, NotedItem{&notes});
  NotedPhase phase;  // its timeout is 0
  CpuRunner<NotingWork> runner(1, 0, 1, states);
  (void)runner.run(phase, items, false, {});
  EXPECT_EQ(notes.made, 0u);
  EXPECT_EQ(notes.asked, 1u);
  EXPECT_EQ(notes.started, 1u);
}

}  // namespace
}  // namespace doorbell::measure
