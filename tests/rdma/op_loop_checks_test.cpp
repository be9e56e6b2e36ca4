// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How OpLoop handles answers that no model gives: receives that report something else than was sent, and
// answers before and after a deadline, with a clock that the test sets.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

#include "measure/check_memory.hpp"
#include "rma/operation_work.hpp"
#include "rma/ping_pong.hpp"
#include "verbs_provider.hpp"

namespace doorbell::rdma {
namespace {

constexpr OneLane kLane;
constexpr u32 kWindow = 4;
constexpr u32 kBytes = 64;

struct SetClock {
  static inline u64 ticks = 0;
  static inline std::function<void()> before_reading;  ///< what happens just before a loop looks at it
  static u64 now() {
    if (before_reading) before_reading();
    return ticks;
  }
  static u64 wall_ns() { return ticks; }
};
using Loop = OpLoop<OneLane, SetClock, false, VerbsQueuePair>;

class OpLoopChecks : public testing::Test {
 protected:
  OpLoopChecks() {
    SetClock::ticks = 0;
    SetClock::before_reading = nullptr;
    phase_.bytes = kBytes;
    phase_.window = kWindow;
    phase_.timeout_ticks = 100;
    phase_.late_ticks = 100;
    phase_.check_ticks = 1;
    queue_.local = memory_;
    queue_.remote = memory_ + sizeof memory_ / 2;
    queue_.stride = kBytes;
    queue_.count = kWindow;
    state_.own = provider_.state(2 * kWindow);
  }
  [[nodiscard]] Loop loop() {
    queue_.checks = checks_.next_phase(phase_.bytes);
    return Loop(kLane, phase_, queue_, state_, OperationWork<VerbsQueuePair>::carve(scratch_.data(), kWindow),
                &stats_);
  }
  /// Steps until a loop to which nothing comes has looked at the clock. False: it has ended.
  [[nodiscard]] static bool wait_until(Loop& l, u64 ticks) {
    SetClock::ticks = ticks;
    for (int i = 0; i < 40; ++i)
      if (!l.step(kLane)) return false;
    return true;
  }
  void arrive(std::size_t n, u32 bytes, bool with_imm, u32 imm) {
    provider_.complete_received(n, IBV_WC_SUCCESS);
    ibv_wc& wc = provider_.arrived.back();
    wc.byte_len = bytes;
    wc.wc_flags = with_imm ? static_cast<u32>(IBV_WC_WITH_IMM) : 0;
    wc.imm_data = htonl(imm);
  }

  MadeUpProvider provider_;
  alignas(64) u8 memory_[2 * kWindow * kBytes] = {};
  std::vector<u64> scratch_ = std::vector<u64>(OperationWork<VerbsQueuePair>::scratch_bytes(kWindow) / 8 + 1);
  OpPhase phase_;
  OpQueue queue_;
  measure::CheckMemory checks_{kWindow, 0};
  Loop::State state_;
  OpStats stats_;
};

// --- what a receive reports --------------------------------------------------------------------------------

struct Arrival {
  Op op;
  u32 bytes;
  bool with_imm;
  u32 imm_off;  ///< added to the right one
  bool right;
};

class Arrivals : public OpLoopChecks, public testing::WithParamInterface<Arrival> {
 protected:
  /// A window of messages, of which the third arrives as the case has it.
  void exchange() {
    const Arrival& a = GetParam();
    phase_.op = a.op;
    queue_.number = 5;
    Loop l = loop();
    while (provider_.sent.size() < kWindow) ASSERT_TRUE(l.step(kLane));
    std::memcpy(queue_.remote, queue_.local, kWindow * kBytes);
    for (u32 i = 0; i < kWindow; ++i) {
      if (i == 2) arrive(i, a.bytes, a.with_imm, i + a.imm_off);
      else arrive(i, kBytes, has_imm(a.op), i);
      provider_.complete_sent(i);
    }
    while (l.step(kLane)) continue;
    l.finish(kLane);
    EXPECT_EQ(stats_.succeeded, kWindow);
  }
};

TEST_P(Arrivals, AreComparedWithWhatWasSent) {
  phase_.verify = true;
  exchange();
  EXPECT_EQ(stats_.checked, kWindow);
  EXPECT_EQ(stats_.corrupt, GetParam().right ? 0u : 1u);
  EXPECT_EQ(stats_.missing + stats_.stale + stats_.misplaced, 0u);
  ASSERT_EQ(stats_.failures, stats_.corrupt);
  if (GetParam().right) return;
  EXPECT_EQ(stats_.first_failures[0].address, 5u) << "the queue";
  EXPECT_EQ(stats_.first_failures[0].sequence, 2u) << "the operation";
}

TEST_P(Arrivals, AreNotLookedAtWithoutVerification) {
  exchange();
  EXPECT_EQ(stats_.checked + stats_.corrupt + stats_.failures, 0u);
}

INSTANTIATE_TEST_SUITE_P(
    OpLoop, Arrivals,
    testing::Values(
        Arrival{Op::send, kBytes, false, 0, true}, Arrival{Op::send, kBytes - 1, false, 0, false},
        Arrival{Op::send, kBytes + 1, false, 0, false}, Arrival{Op::send, 0, false, 0, false},
        Arrival{Op::send_imm, kBytes, true, 0, true}, Arrival{Op::send_imm, kBytes - 1, true, 0, false},
        Arrival{Op::send_imm, kBytes, true, 1, false}, Arrival{Op::send_imm, kBytes, true, 1u << 31, false},
        Arrival{Op::send_imm, kBytes, false, 0, false}, Arrival{Op::write_imm, kBytes, true, 0, true},
        Arrival{Op::write_imm, kBytes + 1, true, 0, false}, Arrival{Op::write_imm, kBytes, false, 0, false}));

// --- deadlines ---------------------------------------------------------------------------------------------

TEST_F(OpLoopChecks, ARespondersDeadlineRunsFromTheLastArrival) {
  phase_.op = Op::send;
  phase_.role = Role::responder;
  queue_.local = nullptr;
  Loop l = loop();
  ASSERT_TRUE(wait_until(l, 50)) << "posts its receives";
  ASSERT_EQ(provider_.received.size(), kWindow);
  ASSERT_TRUE(wait_until(l, 149)) << "before anything has arrived it runs from the post";
  arrive(0, kBytes, false, 0);
  ASSERT_TRUE(wait_until(l, 149));
  ASSERT_TRUE(wait_until(l, 248));
  arrive(1, kBytes, false, 0);
  ASSERT_TRUE(wait_until(l, 248));
  ASSERT_TRUE(wait_until(l, 347));
  EXPECT_FALSE(wait_until(l, 348));
  l.finish(kLane);
  EXPECT_EQ(stats_.stop, StopReason::timeout);
  EXPECT_EQ(stats_.succeeded, 2u);
  EXPECT_EQ(stats_.timed_out, 0u) << "that is what its initiator counts";
}

TEST_F(OpLoopChecks, BeforeTheFirstArrivalARespondersDeadlineRunsFromThePost) {
  phase_.op = Op::send;
  phase_.role = Role::responder;
  queue_.local = nullptr;
  Loop l = loop();
  ASSERT_TRUE(wait_until(l, 50));
  ASSERT_TRUE(wait_until(l, 149));
  EXPECT_FALSE(wait_until(l, 150));
}

TEST_F(OpLoopChecks, AnInitiatorsDeadlineRunsFromThePostOfTheOldest) {
  phase_.op = Op::write;
  queue_.count = kWindow + 1;
  Loop l = loop();
  ASSERT_TRUE(l.step(kLane));
  SetClock::ticks = 60;
  while (provider_.sent.size() < kWindow) ASSERT_TRUE(l.step(kLane));
  provider_.complete_sent(0);
  ASSERT_TRUE(wait_until(l, 99));
  ASSERT_TRUE(wait_until(l, 159)) << "the first has been answered";
  EXPECT_FALSE(wait_until(l, 160)) << "the second was posted at 60";
  l.finish(kLane);
  EXPECT_EQ(stats_.stop, StopReason::timeout);
  EXPECT_EQ(stats_.posted, kWindow + 1);
  EXPECT_EQ(stats_.succeeded, 1u);
  EXPECT_EQ(stats_.timed_out, kWindow);
}

/// Who was stopped for longer than a deadline finds the answers there: they came in time, one is taken a
/// step.
TEST_F(OpLoopChecks, AnswersThatWaitedForTheInitiatorAreNotLost) {
  phase_.op = Op::write;
  for (const bool at_the_clock : {false, true}) {
    SCOPED_TRACE(at_the_clock ? "stopped between a poll and the clock" : "stopped between two steps");
    stats_ = {};
    provider_.sent.clear();
    SetClock::ticks = 0;
    Loop l = loop();
    while (provider_.sent.size() < kWindow) ASSERT_TRUE(l.step(kLane));
    const auto stop_for_long = [&] {
      if (SetClock::ticks > 0) return;
      for (u32 i = 0; i < kWindow; ++i) provider_.complete_sent(i);
      SetClock::ticks = 1000;
    };
    if (at_the_clock) SetClock::before_reading = stop_for_long;
    else stop_for_long();
    while (l.step(kLane)) continue;
    SetClock::before_reading = nullptr;
    l.finish(kLane);
    state_ = l.state();
    EXPECT_EQ(stats_.succeeded, kWindow);
    EXPECT_EQ(stats_.late, kWindow);
    EXPECT_EQ(stats_.timed_out, 0u);
    EXPECT_EQ(stats_.stop, StopReason::done);
  }
}

TEST_F(OpLoopChecks, AMessageThatWaitedForAPingPongIsNotLost) {
  phase_.op = Op::send;
  queue_.remote = nullptr;
  queue_.count = 1;
  PingPong<SetClock, VerbsQueuePair> l(
      kLane, phase_, queue_, state_, OperationWork<VerbsQueuePair>::carve(scratch_.data(), kWindow), &stats_);
  while (provider_.sent.empty()) ASSERT_TRUE(l.step(kLane));
  SetClock::before_reading = [&] {
    if (SetClock::ticks > 0) return;
    arrive(0, kBytes, false, 0);
    provider_.complete_sent(0);
    SetClock::ticks = 1000;
  };
  while (l.step(kLane)) continue;
  SetClock::before_reading = nullptr;
  l.finish(kLane);
  EXPECT_EQ(stats_.succeeded, 1u);
  EXPECT_EQ(stats_.late, 1u);
  EXPECT_EQ(stats_.timed_out, 0u);
  EXPECT_EQ(stats_.stop, StopReason::done);
}

/// The answers to what a phase has given up on come in the drain.
class OpLoopDrain : public OpLoopChecks {
 protected:
  /// A window that times out; gives what the drain behind it counts.
  OpStats drain(const std::function<void()>& answers) {
    phase_.op = Op::write;
    {
      Loop l = loop();
      while (provider_.sent.size() < kWindow) EXPECT_TRUE(l.step(kLane));
      EXPECT_FALSE(wait_until(l, 100));
      l.finish(kLane);
      state_ = l.state();
    }
    EXPECT_EQ(stats_.timed_out, kWindow);
    answers();
    phase_.drain = true;
    queue_.count = 0;
    stats_ = {};
    Loop rest = loop();
    while (rest.step(kLane)) continue;
    rest.finish(kLane);
    EXPECT_EQ(stats_.posted + stats_.protocol + stats_.duplicated, 0u);
    EXPECT_EQ(stats_.timed, 0u) << "how long they took is no longer known";
    // An answered operation is not lost: its phase has counted it as timed out.
    EXPECT_EQ(stats_.succeeded + stats_.failed + stats_.timed_out, 0u);
    return stats_;
  }
};

TEST_F(OpLoopDrain, WhatIsAnsweredBehindItsDeadlineIsLate) {
  const OpStats rest = drain([&] {
    for (u32 i = 0; i < kWindow; ++i) provider_.complete_sent(i);
  });
  EXPECT_EQ(rest.late, kWindow);
  EXPECT_EQ(rest.succeeded, kWindow);
}

TEST_F(OpLoopDrain, WhatIsNotAnsweredStaysLost) {
  const OpStats rest = drain([&] { provider_.complete_sent(1); });
  EXPECT_EQ(rest.late, 2u) << "the answer to the second covers the first";
  EXPECT_EQ(rest.succeeded, 2u);
}

TEST_F(OpLoopDrain, ALateErrorIsAnErrorAndWhatItFlushesHadNoAnswer) {
  const OpStats rest = drain([&] {
    provider_.complete_sent(0);
    provider_.complete_sent(1, IBV_WC_REM_OP_ERR);
    for (u32 i = 2; i < kWindow; ++i) provider_.complete_sent(i, IBV_WC_WR_FLUSH_ERR);
  });
  EXPECT_EQ(rest.late, 2u);
  EXPECT_EQ(rest.succeeded, 1u);
  EXPECT_EQ(rest.failed, 1u);
  EXPECT_EQ(rest.statuses[0].code, static_cast<u16>(Status::remote_operation));
  EXPECT_EQ(rest.statuses[0].count, 1u);
  EXPECT_EQ(rest.statuses[1].count, 0u);
}

TEST_F(OpLoopChecks, LateIsWhatTookLongerThanItMay) {
  phase_.op = Op::write;
  phase_.late_ticks = 40;
  queue_.count = 1;
  // An answer is looked for before the deadline is, so that one behind it is still an answer.
  for (const auto& [at, late] : {std::pair{40u, 0u}, {41u, 1u}, {100u, 1u}, {1000u, 1u}}) {
    stats_ = {};
    provider_.sent.clear();
    SetClock::ticks = 0;
    Loop l = loop();
    while (provider_.sent.empty()) ASSERT_TRUE(l.step(kLane));
    SetClock::ticks = at;
    provider_.complete_sent(0);
    while (l.step(kLane)) continue;
    l.finish(kLane);
    state_ = l.state();
    EXPECT_EQ(stats_.late, late) << at;
    EXPECT_EQ(stats_.succeeded, 1u) << at;
    EXPECT_EQ(stats_.timed_out, 0u) << at;
    EXPECT_EQ(stats_.max_ns, at) << "a tick is a nanosecond here";
    EXPECT_EQ(stats_.sum_ns, at);
  }
}

// --- checkers beside the loop ------------------------------------------------------------------------------

/// One checker, which does its work when the test says so.
class OpLoopChecker : public OpLoopChecks {
 protected:
  using Work = Checker<OneLane, OpPayload<OneLane>>;
  OpLoopChecker() {
    phase_.op = Op::write;
    phase_.verify = true;
  }
  [[nodiscard]] Loop loop() {
    queue_.checks = one_.next_phase(phase_.bytes);
    return Loop(kLane, phase_, queue_, state_, OperationWork<VerbsQueuePair>::carve(scratch_.data(), kWindow),
                &stats_);
  }
  void work() {
    if (!checker_) checker_.emplace(queue_.checks, OpPayload<OneLane>(phase_, queue_), 0);
    while (checker_->step(kLane)) continue;
  }
  /// Posts a window whose data arrives.
  void post(Loop& l) {
    work();
    while (provider_.sent.size() < kWindow) ASSERT_TRUE(l.step(kLane));
    std::memcpy(queue_.remote, queue_.local, kWindow * kBytes);
  }
  /// Steps while time passes; false: the loop goes on for ever.
  [[nodiscard]] static bool ends(Loop& l) {
    for (int i = 0; i < 10000; ++i) {
      ++SetClock::ticks;
      if (!l.step(kLane)) return true;
    }
    return false;
  }

  measure::CheckMemory one_{kWindow, 1};
  std::optional<Work> checker_;
};

TEST_F(OpLoopChecker, AnswersThatComeWhileItWaitsForTheCheckerAreLeftToTheDrain) {
  queue_.count = kWindow;
  {
    Loop l = loop();
    post(l);
    provider_.complete_sent(0);
    ASSERT_TRUE(l.step(kLane));
    while (l.counters().timed_out == 0) {
      ++SetClock::ticks;
      ASSERT_TRUE(l.step(kLane));
    }
    for (u32 i = 1; i < kWindow; ++i) provider_.complete_sent(i);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(l.step(kLane)) << "the first one's data is not checked yet";
    work();
    EXPECT_TRUE(ends(l));
    l.finish(kLane);
    state_ = l.state();
  }
  EXPECT_EQ(stats_.succeeded, 1u);
  EXPECT_EQ(stats_.checked, 1u);
  EXPECT_EQ(stats_.timed_out, kWindow - 1);
  EXPECT_EQ(stats_.unchecked, 0u);
  phase_.drain = true;
  queue_.count = 0;
  stats_ = {};
  Loop rest = loop();
  while (rest.step(kLane)) continue;
  rest.finish(kLane);
  EXPECT_EQ(stats_.late, kWindow - 1);
}

TEST_F(OpLoopChecker, OneThatDoesNotAnswerEndsThePhaseAndWhatItLeftIsCounted) {
  queue_.count = kWindow;
  Loop l = loop();
  post(l);
  for (u32 i = 0; i < kWindow; ++i) provider_.complete_sent(i);
  EXPECT_TRUE(ends(l));
  l.finish(kLane);
  EXPECT_EQ(stats_.stop, StopReason::timeout);
  EXPECT_EQ(stats_.succeeded, kWindow);
  EXPECT_EQ(stats_.checked, 0u);
  EXPECT_EQ(stats_.unchecked, kWindow);
}

TEST_F(OpLoopChecker, OneThatDoesNotAnswerDoesNotHoldUpARemoval) {
  queue_.count = 3 * kWindow;
  u32 alive = 1;
  phase_.alive = &alive;
  Loop l = loop();
  post(l);
  provider_.complete_sent(0);
  ASSERT_TRUE(l.step(kLane));
  alive = 0;
  EXPECT_TRUE(ends(l));
  l.finish(kLane);
  EXPECT_EQ(stats_.stop, StopReason::removed);
  EXPECT_EQ(stats_.aborted, kWindow - 1);
  EXPECT_EQ(stats_.unchecked, 1u);
}

// --- a queue that fails -----------------------------------------------------------------------------------

/// A device may still work on what a failed queue reports as ended: its memory stays as it is.
TEST_F(OpLoopChecks, AfterAFailureNoSlotIsMadeReady) {
  phase_.op = Op::write;
  phase_.verify = true;
  queue_.count = 3 * kWindow;
  Loop l = loop();
  while (provider_.sent.size() < kWindow) ASSERT_TRUE(l.step(kLane));
  const std::vector<u8> first(memory_, memory_ + sizeof memory_);
  std::memcpy(queue_.remote, queue_.local, kBytes);
  provider_.complete_sent(0);
  while (provider_.sent.size() == kWindow) ASSERT_TRUE(l.step(kLane));
  const std::vector<u8> before(memory_, memory_ + sizeof memory_);
  EXPECT_NE(before, first) << "a slot that has succeeded is made ready for the next operation";
  provider_.complete_sent(1, IBV_WC_REM_OP_ERR);
  for (u32 i = 2; i < kWindow + 1; ++i) provider_.complete_sent(i, IBV_WC_WR_FLUSH_ERR);
  while (l.step(kLane)) continue;
  l.finish(kLane);
  EXPECT_EQ(stats_.succeeded, 1u);
  EXPECT_EQ(stats_.failed, kWindow);
  EXPECT_EQ(stats_.corrupt + stats_.missing + stats_.stale, 0u);
  EXPECT_EQ(std::vector<u8>(memory_, memory_ + sizeof memory_), before);
}

}  // namespace
}  // namespace doorbell::rdma
