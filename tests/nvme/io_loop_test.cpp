// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The I/O loop step by step, with a device and a clock that the test controls: deadlines, answers after them,
// what ends a phase early, and passes of writes.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "emulated_warp.hpp"
#include "measure/check_memory.hpp"
#include "nvme/io_loop.hpp"
#include "ring_controller.hpp"

namespace doorbell::nvme {
namespace {

/// Time that passes only when the test says so.
struct TestClock {
  static inline std::atomic<u64> ticks{0};
  static inline std::function<void()> before_reading;  ///< what happens just before a loop looks at it
  static u64 now() {
    if (before_reading) before_reading();
    return ticks.load(std::memory_order_relaxed);
  }
  static u64 wall_ns() { return ticks.load(std::memory_order_relaxed); }
};

constexpr u64 kTimeout = 1000;
/// The loop looks at the clock at least once in so many steps, however idle it is.
constexpr u32 kSoon = 32;
constexpr u32 kMostSteps = 5000;

struct Shape {
  u32 window = 4;
  u32 batch = 4;
  u64 ios = 4;
  u64 span = 4;
  IoOpcode op = IoOpcode::read;
  bool random = false;
  u32 checkers = 0;
};

/// One queue, its device, and phases on it one after the other.
class Stage {
 public:
  explicit Stage(const Shape& s)
      : device(16), data_(s.window * kPage / sizeof(Word16)), memory_(scratch_words(s.window)) {
    TestClock::ticks = 0;
    scratch_ = carve_scratch(memory_.data(), s.window, histogram::kBuckets);
    state_.memory = device.memory();
    checks_ = measure::CheckMemory(s.window, s.checkers);
    queue.memory = device.memory();
    queue.data = reinterpret_cast<u8*>(data_.data());
    queue.stride = kPage;
    queue.data_iova = u64{1} << 32;
    queue.count = s.ios;
    queue.span = s.span;
    phase.op = s.op;
    phase.random = s.random;
    phase.batch = s.batch;
    phase.window = s.window;
    phase.timeout_ticks = kTimeout;
    phase.late_ticks = 1'000'000;  // longer than a command may take: what is late has passed its deadline
    phase.check_ticks = 1;
  }

  /// One phase by N lanes. `before(step)`, on one lane, comes before each step; time passes only there.
  template <u32 N>
  OpStats run(const std::function<void(u32 step)>& before) {
    OpStats stats;
    queue.checks = checks_.next_phase(u64{phase.blocks} * phase.lba_bytes);
    collective<N>([&](const auto& warp) {
      using Warp = std::remove_cvref_t<decltype(warp)>;
      IoLoop<Warp, TestClock> loop(warp, phase, queue, state_, scratch_, &stats);
      bool more = true;
      u32 step = 0;
      for (; more && step < kMostSteps; ++step) {
        if (warp.lane() == 0) before(step);
        warp.sync();
        more = loop.step(warp);
      }
      loop.finish(warp);
      warp.sync();
      if (warp.lane() != 0) return;
      EXPECT_FALSE(more) << "the phase does not end";
      steps = step;
      state_ = loop.state();
    });
    return stats;
  }
  /// A phase that posts nothing; `answers` come before it looks.
  template <u32 N>
  OpStats drain(const std::function<void()>& answers) {
    phase.drain = true;
    queue.count = 0;
    return run<N>([&](u32 step) {
      if (step == 0) answers();
    });
  }
  /// Fetches what is announced, behind what it has fetched before.
  void fetch() {
    while (device.announced() > 0) fetched.push_back(device.fetch());
  }
  [[nodiscard]] u16 cid(u32 i) const { return fetched.at(i).cid; }
  [[nodiscard]] u64 binned() const {
    u64 n = 0;
    for (u32 b = 0; b < histogram::kBuckets; ++b) n += scratch_.bins[b];
    return n;
  }

  RingController device;
  IoPhase phase;
  IoQueue queue;
  std::vector<Sqe> fetched;
  u32 steps = 0;  ///< of the last phase

 private:
  static constexpr u64 kPage = 4096;
  static std::size_t scratch_words(u32 window) {
    return IoScratch::bytes(window, histogram::kBuckets) / sizeof(u64) + 1;
  }

  std::vector<Word16> data_;
  std::vector<u64> memory_;
  measure::CheckMemory checks_;
  IoScratch scratch_;
  QueuePairState state_;
};

/// `f` by one lane and by 8.
template <class F>
void by_one_and_by_many(F f) {
  {
    SCOPED_TRACE("1 lane");
    f.template operator()<1>();
  }
  SCOPED_TRACE("8 lanes");
  f.template operator()<8>();
}

// --- checkers beside the loop ----------------------------------------------------------------------

/// Four reads, all answered at once, of a controller that goes away before the loop has taken all answers.
/// The checker works in the steps that `works` names.
template <u32 N>
void remove_beside_a_checker(const std::function<bool(u32 step)>& works,
                             const std::function<void(OpStats)>& expect) {
  Stage s({.ios = 16, .span = 16, .checkers = 1});
  s.phase.verify = true;
  u32 csts = csts::ready;
  s.phase.csts = &csts;
  std::optional<Checker<OneLane, IoPayload<OneLane>>> checker;
  const OpStats stats = s.run<N>([&](u32 step) {
    if (!checker) checker.emplace(s.queue.checks, IoPayload<OneLane>(s.phase, s.queue), 0);
    while (works(step) && checker->step(OneLane{})) continue;
    if (s.fetched.size() < 4) {
      s.fetch();
      if (s.fetched.size() < 4) return;
      for (const Sqe& e : s.fetched) s.device.complete(e.cid);
      csts = ~0u;
    }
    ++TestClock::ticks;
  });
  EXPECT_EQ(stats.stop, StopReason::removed);
  EXPECT_EQ(stats.posted, 4u);
  EXPECT_EQ(stats.posted, stats.succeeded + stats.failed + stats.timed_out + stats.aborted);
  expect(stats);
}

TEST(IoLoopChecker, ARemovalWhileDataIsCheckedCountsEachCommandOnce) {
  by_one_and_by_many([]<u32 N>() {
    remove_beside_a_checker<N>([](u32 step) { return step < 8 || step > 200; },
                               [](const OpStats& stats) {
                                 EXPECT_EQ(stats.checked, stats.succeeded);
                                 EXPECT_EQ(stats.unchecked, 0u);
                               });
  });
}

TEST(IoLoopChecker, OneThatDoesNotAnswerEndsThePhaseAndWhatItLeftIsCounted) {
  by_one_and_by_many([]<u32 N>() {
    remove_beside_a_checker<N>([](u32 step) { return step < 2; },
                               [](const OpStats& stats) {
                                 EXPECT_EQ(stats.checked, 0u);
                                 EXPECT_EQ(stats.unchecked, stats.succeeded);
                                 EXPECT_GT(stats.succeeded, 0u);
                               });
  });
}

// --- deadlines -------------------------------------------------------------------------------------

/// Four commands of which two are answered in time and two not; gives what the phase counted.
template <u32 N>
OpStats two_of_four(Stage& s) {
  return s.run<N>([&](u32 step) {
    if (step == kSoon) TestClock::ticks = kTimeout;
    if (step != 1) return;
    s.fetch();
    s.device.complete(s.cid(0));
    s.device.complete(s.cid(1));
  });
}

TEST(IoLoop, AnswersThatComeInTheDrain) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({});
    const OpStats phase = two_of_four<N>(s);
    EXPECT_EQ(phase.stop, StopReason::timeout);
    EXPECT_EQ(phase.succeeded, 2u);
    EXPECT_EQ(phase.timed_out, 2u);
    EXPECT_EQ(phase.late, 0u);
    const OpStats rest = s.drain<N>([&] {
      TestClock::ticks = 3 * kTimeout;
      s.device.complete(s.cid(3));
      s.device.complete(s.cid(2), status::write_fault);
    });
    EXPECT_EQ(rest.late, 2u);
    EXPECT_EQ(phase.timed_out + rest.timed_out, 0u) << "what was answered is not lost";
    EXPECT_EQ(rest.succeeded, 1u);
    EXPECT_EQ(rest.failed, 1u);
    EXPECT_EQ(rest.statuses[0].code, status::write_fault);
    EXPECT_EQ(rest.statuses[0].count, 1u);
    EXPECT_EQ(rest.duplicated + rest.protocol, 0u);
    EXPECT_EQ(s.binned(), 3u) << "each that succeeded has a latency";
    const OpStats again = s.drain<N>([&] { s.device.complete(s.cid(3)); });
    EXPECT_EQ(again.duplicated, 1u) << "a late answer counts once";
    EXPECT_EQ(again.late + again.succeeded + again.timed_out, 0u);
  });
}

TEST(IoLoop, AnswersWhileOthersAreInFlight) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({.window = 2, .batch = 1, .ios = 10});
    const OpStats phase = s.run<N>([&](u32 step) {
      if (step == 1) TestClock::ticks = 600;  // the second is posted later than the first
      if (step == 2) TestClock::ticks = kTimeout;
      if (step == 2 + kSoon) {
        s.fetch();
        s.device.complete(s.cid(0));
      }
      if (step == 2 + 2 * kSoon) s.device.complete(s.cid(1));
    });
    EXPECT_EQ(phase.stop, StopReason::timeout);
    EXPECT_EQ(phase.posted, 2u) << "nothing is posted after a deadline has passed";
    EXPECT_EQ(phase.succeeded, 2u);
    EXPECT_EQ(phase.late, 1u);
    EXPECT_EQ(phase.timed_out, 0u);
    EXPECT_EQ(phase.duplicated, 0u);
  });
}

/// Who was stopped for longer than a deadline finds the answers there, more than one poll takes.
TEST(IoLoop, AnswersThatWaitedForTheInitiatorAreNotLost) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({.window = 12, .batch = 12, .ios = 12, .span = 12});
    const OpStats phase = s.run<N>([&](u32 step) {
      if (step != 3) return;
      s.fetch();
      for (u32 i = 0; i < 12; ++i) s.device.complete(s.cid(i));
      TestClock::ticks = 3 * kTimeout;
    });
    EXPECT_EQ(phase.stop, StopReason::done);
    EXPECT_EQ(phase.succeeded, 12u);
    EXPECT_EQ(phase.timed_out + phase.late, 0u);
  });
}

/// A model is stopped together with its initiator: what it owes then comes after both go on.
TEST(IoLoop, WhatTheDeviceOwesAfterBothWereStoppedIsNotLost) {
  Stage s({});
  s.phase.away_ticks = kTimeout / 10;
  const OpStats phase = s.run<1>([&](u32 step) {
    s.fetch();
    if (step == 3) TestClock::ticks += 5 * kTimeout;
    if (step > 3 && step < 3 + kTimeout / 2) ++TestClock::ticks;
    if (step != 3 + kTimeout / 2) return;
    for (u32 i = 0; i < 4; ++i) s.device.complete(s.cid(i));
  });
  EXPECT_EQ(phase.stop, StopReason::done);
  EXPECT_EQ(phase.succeeded, 4u);
  EXPECT_EQ(phase.timed_out, 0u);
}

TEST(IoLoop, WhatIsLostIsFoundAfterAStopToo) {
  Stage s({});
  s.phase.away_ticks = kTimeout / 10;
  const OpStats phase = s.run<1>([&](u32 step) {
    if (step == 3 || step == 200) TestClock::ticks += 5 * kTimeout;
    ++TestClock::ticks;
  });
  EXPECT_EQ(phase.stop, StopReason::timeout);
  EXPECT_EQ(phase.timed_out, 4u);
  EXPECT_LT(s.steps, kTimeout + 4 * kSoon) << "a stop counts once";
}

/// The clock is looked at before a poll: what came before that look is found by the poll.
TEST(IoLoop, AnswersThatCameBeforeTheClockWasReadAreNotLost) {
  Stage s({});
  TestClock::before_reading = [&] {
    if (TestClock::ticks != 1) return;
    s.fetch();
    for (u32 i = 0; i < 4; ++i) s.device.complete(s.cid(i));
    TestClock::ticks = 3 * kTimeout;
  };
  const OpStats phase = s.run<1>([](u32 step) {
    if (step == 1) TestClock::ticks = 1;  // all have been posted
  });
  TestClock::before_reading = nullptr;
  EXPECT_EQ(phase.stop, StopReason::done);
  EXPECT_EQ(phase.succeeded, 4u);
  EXPECT_EQ(phase.timed_out, 0u);
}

/// The deletion of its queue answers for a command that is no longer waited for: that is no late answer.
TEST(IoLoop, TheDeletionOfTheQueueIsNoAnswer) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({});
    const OpStats phase = two_of_four<N>(s);
    const OpStats rest = s.drain<N>([&] {
      s.device.complete(s.cid(2), status::sq_deleted);
      s.device.complete(s.cid(3), status::sq_deleted);
    });
    EXPECT_EQ(phase.timed_out + rest.timed_out, 2u);
    EXPECT_EQ(rest.late + rest.failed + rest.succeeded + rest.duplicated, 0u);
  });
}

/// The device may still write to the buffer of a command that it has not answered.
TEST(IoLoop, ALostSlotServesAgainOnlyWhenItIsAnswered) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({});
    (void)two_of_four<N>(s);
    const u32 lost = s.cid(2) & kSlotMask, lost_too = s.cid(3) & kSlotMask;
    const auto slots_of_a_phase = [&] {
      std::set<u32> used;
      s.fetched.clear();
      s.queue.count = 20;
      std::size_t answered = 0;
      (void)s.run<N>([&](u32) {
        s.fetch();
        for (; answered < s.fetched.size(); ++answered) {
          used.insert(s.fetched[answered].cid & kSlotMask);
          s.device.complete(s.fetched[answered].cid);
        }
      });
      EXPECT_EQ(answered, 20u);
      return used;
    };
    const u16 late = s.cid(2);
    const std::set<u32> without = slots_of_a_phase();
    EXPECT_EQ(without.size(), 2u);
    EXPECT_FALSE(without.contains(lost) || without.contains(lost_too));
    s.phase.drain = true;
    s.queue.count = 0;
    EXPECT_EQ(s.drain<N>([&] { s.device.complete(late); }).late, 1u);
    s.phase.drain = false;
    const std::set<u32> with = slots_of_a_phase();
    EXPECT_TRUE(with.contains(lost));
    EXPECT_FALSE(with.contains(lost_too));
  });
}

/// A look at the deadlines plans the next one by the oldest command in flight, not by the clock.
TEST(IoLoop, ADeadlineIsNoticedWhenItPasses) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({.window = 2, .batch = 1, .ios = 2});
    constexpr u32 kLast = 10 + 3 * kSoon;
    const OpStats phase = s.run<N>([&](u32 step) {
      if (step == 1) TestClock::ticks = 600;  // the second command's deadline is 1600
      if (step == 3) {
        s.fetch();
        s.device.complete(s.cid(0));
      }
      if (step == 10) TestClock::ticks = kTimeout;  // the first look
      if (step == 10 + kSoon) TestClock::ticks = 1599;
      if (step == kLast) TestClock::ticks = 1600;
    });
    EXPECT_EQ(phase.timed_out, 1u);
    EXPECT_GT(s.steps, kLast) << "too early";
    EXPECT_LE(s.steps, kLast + kSoon) << "too late";
  });
}

/// A completion that names another queue, or a slot that there is not, answers nothing of this one.
TEST(IoLoop, CompletionsOfOthersAnswerNothing) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({});
    const OpStats phase = s.run<N>([&](u32 step) {
      if (step == 1) {
        s.fetch();
        s.device.complete_as(s.cid(0), status::success, 0, 2, 4);
        s.device.complete(static_cast<u16>(s.cid(1) + 4));
      }
      if (step != kSoon) return;
      for (u32 i = 0; i < 4; ++i) s.device.complete(s.cid(i));
    });
    EXPECT_GT(s.steps, kSoon) << "it took them for answers";
    EXPECT_EQ(phase.protocol, 1u);
    EXPECT_EQ(phase.duplicated, 1u);
    EXPECT_EQ(phase.succeeded, 4u);
  });
}

// --- what ends a phase early -------------------------------------------------------------------------

TEST(IoLoop, TheStatusRegisterEndsAPhase) {
  const std::pair<u32, StopReason> all[] = {{csts::ready | csts::fatal, StopReason::reset},
                                            {csts::fatal, StopReason::reset},
                                            {0, StopReason::reset},
                                            {~0u, StopReason::removed}};
  for (const auto& [value, why] : all) {
    SCOPED_TRACE(value);
    by_one_and_by_many([&]<u32 N>() {
      Stage s({.ios = 8});
      u32 word = csts::ready;
      s.phase.csts = &word;
      const OpStats phase = s.run<N>([&](u32 step) {
        if (step == 1) {
          s.fetch();
          s.device.complete(s.cid(0));
        }
        if (step != 4) return;
        store_relaxed(&word, value);
        TestClock::ticks = 10;
      });
      EXPECT_LE(s.steps, 4 + kSoon);
      EXPECT_EQ(phase.stop, why);
      EXPECT_EQ(phase.succeeded, 1u);
      EXPECT_EQ(phase.aborted, 3u);
      EXPECT_EQ(phase.timed_out, 0u);
      EXPECT_EQ(phase.posted, 4u);
    });
  }
}

/// A refused write leaves old data, and no second failure. A read that fails says nothing of the data.
TEST(IoLoop, OnlyRefusedWritesAreRemembered) {
  for (const IoOpcode op : {IoOpcode::read, IoOpcode::write})
    by_one_and_by_many([&]<u32 N>() {
      Stage s({.op = op});
      u32 refused = 0;
      s.queue.unwritten = &refused;
      s.queue.unwritten_bits = 4;
      const OpStats phase = s.run<N>([&](u32 step) {
        if (step != 1) return;
        s.fetch();
        for (u32 i = 0; i < 4; ++i)
          s.device.complete(s.cid(i), i == 2 ? status::write_fault : status::success);
      });
      EXPECT_EQ(phase.failed, 1u);
      EXPECT_EQ(refused, op == IoOpcode::write ? 1u << 2 : 0u);
    });
}

/// Asked to stop, and then the device goes while commands are in flight: that is what is told. The other way
/// round nothing becomes harmless.
TEST(IoLoop, TheGravestReasonIsTold) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({.ios = 8});
    u32 word = csts::ready, asked = 0;
    s.phase.csts = &word;
    s.phase.stop = &asked;
    const OpStats phase = s.run<N>([&](u32 step) {
      TestClock::ticks = step;
      if (step == 1) store_relaxed(&asked, 1);
      if (step == 2 * kSoon) store_relaxed(&word, ~0u);
    });
    EXPECT_EQ(phase.stop, StopReason::removed);
    EXPECT_EQ(phase.aborted, 4u);
  });
  by_one_and_by_many([]<u32 N>() {
    Stage s({.ios = 8});
    u32 asked = 0;
    s.phase.stop = &asked;
    s.phase.duration_ticks = 1;
    const OpStats phase = s.run<N>([&](u32 step) {
      TestClock::ticks = step < 2 * kSoon ? step : kTimeout + step;
      if (step == kSoon) store_relaxed(&asked, 1);
    });
    EXPECT_EQ(phase.stop, StopReason::timeout);
    EXPECT_EQ(phase.timed_out, 4u);
  });
}

/// Asked to give up, the loop awaits nothing more: what is in flight is neither lost nor late.
TEST(IoLoop, WhatIsInFlightIsAbortedWhenTheLoopGivesUp) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({.ios = 8});
    u32 asked = 0;
    s.phase.stop = &asked;
    const OpStats phase = s.run<N>([&](u32 step) {
      TestClock::ticks = step;
      if (step == 1) store_relaxed(&asked, static_cast<u32>(Asked::stop));
      if (step == 2 * kSoon) store_relaxed(&asked, static_cast<u32>(Asked::give_up));
    });
    EXPECT_EQ(phase.stop, StopReason::requested);
    EXPECT_EQ(phase.aborted, 4u);
    EXPECT_EQ(phase.timed_out, 0u);
    EXPECT_EQ(phase.posted, 4u);
  });
}

TEST(IoLoop, AStatusOfNoConcernEndsNothing) {
  by_one_and_by_many([]<u32 N>() {
    Stage s({});
    const u32 word = csts::ready | csts::shutdown_complete;
    s.phase.csts = &word;
    const OpStats phase = s.run<N>([&](u32 step) {
      TestClock::ticks = step;
      if (step != kSoon) return;
      s.fetch();
      for (u32 i = 0; i < 4; ++i) s.device.complete(s.cid(i));
    });
    EXPECT_EQ(phase.stop, StopReason::done);
    EXPECT_EQ(phase.succeeded, 4u);
  });
}

TEST(IoLoop, AStopAndADurationLetWhatIsInFlightEnd) {
  for (const bool by_flag : {true, false}) {
    by_one_and_by_many([&]<u32 N>() {
      Stage s({.ios = 100});
      u32 stop = 0;
      s.phase.stop = &stop;
      s.phase.duration_ticks = by_flag ? 0 : 10;
      const OpStats phase = s.run<N>([&](u32 step) {
        if (step == 1) {
          if (by_flag) store_relaxed(&stop, 1);
          TestClock::ticks = by_flag ? 1 : 9;
        }
        if (step == 1 + kSoon) TestClock::ticks = 10;
        if (step < 1 + 2 * kSoon) return;
        s.fetch();
        ASSERT_EQ(s.fetched.size(), 4u) << "posted after the end";
        if (step < 5 + 2 * kSoon) s.device.complete(s.cid(step - (1 + 2 * kSoon)));
      });
      EXPECT_EQ(phase.stop, by_flag ? StopReason::requested : StopReason::duration);
      EXPECT_EQ(phase.posted, 4u);
      EXPECT_EQ(phase.succeeded, 4u);
      EXPECT_EQ(phase.aborted + phase.timed_out, 0u);
    });
  }
}

// --- passes ----------------------------------------------------------------------------------------

/// A device that always answers the youngest command keeps the oldest as long as it can: two writes to one
/// block at a time would end in an order of its own.
TEST(IoLoop, NoTwoWritesToABlockAtATime) {
  const std::pair<u32, bool> all[] = {{1, false}, {3, true}, {8, false}};
  for (const auto& [batch, random] : all) {
    SCOPED_TRACE(testing::Message() << "batch " << batch << (random ? " random" : ""));
    by_one_and_by_many([&]<u32 N>() {
      Stage s({.window = 8, .batch = batch, .ios = 14, .span = 4, .op = IoOpcode::write, .random = random});
      std::vector<Sqe> held;
      std::vector<u64> order;
      const OpStats phase = s.run<N>([&](u32 step) {
        while (s.device.announced() > 0) {
          const Sqe e = s.device.fetch();
          for (const Sqe& other : held) EXPECT_NE(lba_of(e), lba_of(other)) << "write " << order.size();
          held.push_back(e);
          order.push_back(lba_of(e));
        }
        if (step % 3 != 2 || held.empty()) return;
        s.device.complete(held.back().cid);
        held.pop_back();
      });
      EXPECT_EQ(phase.succeeded, 14u);
      ASSERT_EQ(order.size(), 14u);
      for (std::size_t at = 0; at + 4 <= order.size(); at += 4) {
        const std::set<u64> pass(order.begin() + static_cast<long>(at),
                                 order.begin() + static_cast<long>(at) + 4);
        EXPECT_EQ(pass, (std::set<u64>{0, 1, 2, 3})) << "pass " << at / 4;
      }
    });
  }
}

}  // namespace
}  // namespace doorbell::nvme
