// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// OpLoop on a fake provider: completions in an order that devices seldom produce.

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <vector>

#include "loop/histogram.hpp"
#include "measure/check_memory.hpp"
#include "rma/operation_work.hpp"
#include "verbs_provider.hpp"

namespace doorbell::rdma {
namespace {

constexpr OneLane kLane;
constexpr u32 kWindow = 4;

/// SENDs of one queue pair to itself.
class SendLoop : public testing::Test {
 protected:
  using Work = OperationWork<VerbsQueuePair>;
  using Loop = Work::Loop<false>;

  SendLoop() {
    phase_.op = Op::send;
    phase_.bytes = 64;
    phase_.window = kWindow;
    phase_.timeout_ticks = HostClock::ticks(60);
    phase_.late_ticks = phase_.timeout_ticks;
    phase_.check_ticks = HostClock::ticks(1e-3);
    queue_.local = memory_;
    queue_.remote = memory_ + sizeof memory_ / 2;
    queue_.stride = 64;
    queue_.count = kWindow;
    state_.own = provider_.state(2 * kWindow);
  }

  /// Posts a window, takes all that `receives` completes, then what `requests` does, and ends.
  template <class Receives, class Requests>
  void run(Receives receives, Requests requests) {
    Loop loop(kLane, phase_, queue_, state_, Work::carve(scratch_.data(), kWindow), &stats_);
    while (provider_.sent.size() < kWindow) ASSERT_TRUE(loop.step(kLane));
    receives();
    while (!provider_.arrived.empty()) ASSERT_TRUE(loop.step(kLane));
    requests();
    while (loop.step(kLane)) continue;
    loop.finish(kLane);
  }
  /// The first request fails with `status`, those behind it are flushed.
  void fail_requests(ibv_wc_status status) {
    provider_.complete_sent(0, status);
    for (u32 i = 1; i < kWindow; ++i) provider_.complete_sent(i, IBV_WC_WR_FLUSH_ERR);
  }
  /// Operations in the latency buckets.
  u64 binned() {
    const u64* const bins = Work::carve(scratch_.data(), kWindow).bins;
    return std::accumulate(bins, bins + histogram::kBuckets, u64{0});
  }
  std::map<Status, u64> statuses() const {
    std::map<Status, u64> all;
    for (const auto& s : stats_.statuses)
      if (s.count > 0) all[static_cast<Status>(s.code)] += s.count;
    return all;
  }

  MadeUpProvider provider_;
  alignas(64) u8 memory_[2 * kWindow * 64] = {};
  std::vector<u64> scratch_ = std::vector<u64>(Work::scratch_bytes(kWindow) / 8 + 1);
  OpPhase phase_;
  OpQueue queue_;
  Work::State state_;
  OpStats stats_;
};

TEST_F(SendLoop, AFlushedReceiveDoesNotHideWhyItsRequestFailed) {
  // The receives' completions are seen first, as on a device that fails between the two looks.
  run(
      [&] {
        for (u32 i = 0; i < kWindow; ++i) provider_.complete_received(i, IBV_WC_WR_FLUSH_ERR);
      },
      [&] { fail_requests(IBV_WC_RNR_RETRY_EXC_ERR); });
  EXPECT_EQ(stats_.failed, kWindow);
  EXPECT_EQ(statuses(),
            (std::map<Status, u64>{{Status::rnr_retry_exceeded, 1}, {Status::flushed, kWindow - 1}}));
  EXPECT_EQ(stats_.stop, StopReason::broken);
}

TEST_F(SendLoop, ARequestThatSucceedsDoesNotHideItsFlushedReceive) {
  run([&] { provider_.complete_received(0, IBV_WC_WR_FLUSH_ERR); },
      [&] {
        for (u32 i = 0; i < kWindow; ++i) provider_.complete_sent(i);
      });
  EXPECT_EQ(stats_.failed, 1u);
  EXPECT_EQ(statuses(), (std::map<Status, u64>{{Status::flushed, 1}}));
}

TEST_F(SendLoop, OnlyWhatSucceededIsInTheLatencies) {
  run(
      [&] {
        provider_.complete_received(0, IBV_WC_SUCCESS);
        for (u32 i = 1; i < kWindow; ++i) provider_.complete_received(i, IBV_WC_WR_FLUSH_ERR);
      },
      [&] {
        provider_.complete_sent(0);
        provider_.complete_sent(1, IBV_WC_REM_OP_ERR);
        for (u32 i = 2; i < kWindow; ++i) provider_.complete_sent(i, IBV_WC_WR_FLUSH_ERR);
      });
  EXPECT_EQ(stats_.succeeded, 1u);
  EXPECT_EQ(stats_.failed, kWindow - 1);
  EXPECT_EQ(stats_.timed, 1u);
  EXPECT_EQ(binned(), 1u);
}

TEST_F(SendLoop, WhereNothingSucceededThereIsNoLatency) {
  run(
      [&] {
        for (u32 i = 0; i < kWindow; ++i) provider_.complete_received(i, IBV_WC_WR_FLUSH_ERR);
      },
      [&] { fail_requests(IBV_WC_REM_OP_ERR); });
  EXPECT_EQ(stats_.failed, kWindow);
  EXPECT_EQ(stats_.timed, 0u);
  EXPECT_EQ(stats_.sum_ns, 0u);
  EXPECT_EQ(binned(), 0u);
}

TEST_F(SendLoop, AReceiveTellsWhatOnlyItKnows) {
  run([&] { provider_.complete_received(0, IBV_WC_LOC_LEN_ERR); },
      [&] { fail_requests(IBV_WC_REM_INV_REQ_ERR); });
  EXPECT_EQ(stats_.failed, kWindow);
  EXPECT_EQ(statuses(), (std::map<Status, u64>{{Status::local_length, 1}, {Status::flushed, kWindow - 1}}));
}

// --- sub-steps ----------------------------------------------------------------------------------------

constexpr u64 kPayload = 1'000'000, kBuild = 100, kRing = 10, kPoll = 1;

/// Time that passes only where a step says so. A loop works on payloads between two readings: the first two
/// of all, and the third and fourth behind a poll that has found something.
struct StepClock {
  static inline u64 ticks = 0;
  static inline u32 readings_to_payload = 0;
  static inline bool in_payload = false;
  static u64 now() {
    in_payload = readings_to_payload == 1;
    if (readings_to_payload > 0) --readings_to_payload;
    return ticks;
  }
  static u64 wall_ns() { return ticks; }
};

/// A lane whose work on payloads takes time.
struct SlowLane : OneLane {
  [[nodiscard]] u32 lane() const {
    if (StepClock::in_payload) StepClock::ticks += kPayload;
    return 0;
  }
};

/// Each of its steps takes its own time.
class SlowQueue : public VerbsQueuePair {
 public:
  using VerbsQueuePair::VerbsQueuePair;
  template <class Build>
  void post(const SlowLane& lane, u32 n, Build build) {
    StepClock::ticks += kBuild * n;
    VerbsQueuePair::post(lane, n, build);
  }
  u32 ring(const SlowLane& lane) {
    StepClock::ticks += kRing;
    return VerbsQueuePair::ring(lane);
  }
  Polled poll(const SlowLane& lane, u32 most) {
    StepClock::ticks += kPoll;
    const Polled polled = VerbsQueuePair::poll(lane, most);
    if (polled.count > 0) StepClock::readings_to_payload = 3;
    return polled;
  }
};

class StepLoop : public testing::Test {
 protected:
  using Loop = OpLoop<SlowLane, StepClock, true, SlowQueue>;
  static constexpr u32 kCount = 3 * kWindow;

  StepLoop() {
    StepClock::ticks = 1;
    StepClock::readings_to_payload = 1;
    phase_.op = Op::write;
    phase_.verify = true;
    phase_.bytes = 64;
    phase_.window = kWindow;
    phase_.batch = 2;
    phase_.timeout_ticks = 1000 * kPayload;
    phase_.late_ticks = phase_.timeout_ticks;
    phase_.check_ticks = 1;
    queue_.local = memory_;
    queue_.stride = 64;
    queue_.count = kCount;
    state_.own = provider_.state(2 * kWindow);
  }

  /// Runs until the loop ends; `answer` is called with the requests that have been sent.
  template <class Answer>
  void run(Answer answer) {
    const SlowLane lane;
    queue_.checks = checks_.next_phase(phase_.bytes);
    Loop loop(lane, phase_, queue_, state_, carve_op_scratch(scratch_.data(), kWindow, histogram::kBuckets),
              &stats_);
    while (loop.step(lane)) answer(provider_.sent.size());
    loop.finish(lane);
  }
  [[nodiscard]] u64 steps() const {
    return stats_.build_ticks + stats_.enqueue_ticks + stats_.sq_doorbell_ticks + stats_.cq_poll_ticks;
  }

  MadeUpProvider provider_;
  alignas(64) u8 memory_[kWindow * 64] = {};
  std::vector<u64> scratch_ = std::vector<u64>(OpScratch::bytes(kWindow, histogram::kBuckets) / 8 + 1);
  OpPhase phase_;
  OpQueue queue_;
  measure::CheckMemory checks_{kWindow, 0};
  OpState<VerbsQueuePair::State> state_;
  OpStats stats_;
};

TEST_F(StepLoop, ThePayloadIsAStepOfItsOwn) {
  std::size_t answered = 0;
  run([&](std::size_t sent) {
    for (; answered < sent; ++answered) provider_.complete_sent(answered);
  });
  EXPECT_EQ(stats_.succeeded, kCount);
  EXPECT_GE(stats_.payload_ticks, kCount / 2 * kPayload);
  // No payload is part of what follows it, nor of an operation's own time.
  EXPECT_EQ(stats_.payload_ticks % kPayload, 0u);
  EXPECT_EQ(stats_.build_ticks, kCount * kBuild);
  EXPECT_EQ(stats_.sq_doorbell_ticks, kCount / 2 * kRing);
  EXPECT_GT(stats_.cq_poll_ticks, 0u);
  EXPECT_LE(stats_.cq_poll_ticks, stats_.polls * kPoll);
  EXPECT_LE(steps(), stats_.total_ticks);
}

TEST_F(StepLoop, TheStepsAreNeverMoreThanTheTotalAlsoWhereOperationsFail) {
  // One succeeds at once; the others wait long for their errors.
  u32 rounds = 0;
  run([&](std::size_t sent) {
    if (++rounds == 1) provider_.complete_sent(0);
    if (rounds != 200) return;
    provider_.complete_sent(1, IBV_WC_REM_OP_ERR);
    for (std::size_t i = 2; i < sent; ++i) provider_.complete_sent(i, IBV_WC_WR_FLUSH_ERR);
  });
  EXPECT_EQ(stats_.succeeded + stats_.failed, stats_.posted);
  EXPECT_LE(steps(), stats_.total_ticks);
}

TEST_F(StepLoop, TheStepsAreNeverMoreThanTheTotalAlsoWhereOperationsTimeOut) {
  phase_.timeout_ticks = 500;
  run([](std::size_t) {});
  EXPECT_GT(stats_.timed_out, 0u);
  EXPECT_GT(stats_.cq_poll_ticks, 0u);
  EXPECT_LE(steps(), stats_.total_ticks);
}

TEST_F(StepLoop, WhatIsInFlightIsAbortedWhenTheLoopGivesUp) {
  phase_.timeout_ticks = ~u64{0} / 2;
  u32 asked = 0, rounds = 0;
  phase_.stop = &asked;
  run([&](std::size_t) {
    if (++rounds == 50) asked = static_cast<u32>(Asked::stop);
    if (rounds == 100) asked = static_cast<u32>(Asked::give_up);
  });
  EXPECT_EQ(stats_.stop, StopReason::requested);
  EXPECT_GT(stats_.aborted, 0u);
  EXPECT_EQ(stats_.aborted, stats_.posted);
  EXPECT_EQ(stats_.timed_out, 0u);
  EXPECT_LE(steps(), stats_.total_ticks);
}

TEST_F(StepLoop, TheStepsAreNeverMoreThanTheTotalAlsoWhereTheDeviceGoesAway) {
  u32 alive = 1, rounds = 0;
  phase_.alive = &alive;
  run([&](std::size_t) { alive = ++rounds < 50 ? 1 : 0; });
  EXPECT_EQ(stats_.stop, StopReason::removed);
  EXPECT_GT(stats_.aborted, 0u);
  EXPECT_LE(steps(), stats_.total_ticks);
}

}  // namespace
}  // namespace doorbell::rdma
