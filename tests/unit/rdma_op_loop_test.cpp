// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// OpLoop on a made-up provider: what comes in an order that a device seldom takes.

#include <doorbell/histogram.hpp>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "rdma/op_work.hpp"
#include "unit/verbs_provider.hpp"

namespace doorbell::rdma {
namespace {

constexpr OneLane kLane;
constexpr u32 kWindow = 4;

/// SENDs of one queue pair to itself.
class SendLoop : public testing::Test {
 protected:
  using Work = OpWork<VerbsQueuePair>;
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

TEST_F(SendLoop, AReceiveTellsWhatOnlyItKnows) {
  run([&] { provider_.complete_received(0, IBV_WC_LOC_LEN_ERR); },
      [&] { fail_requests(IBV_WC_REM_INV_REQ_ERR); });
  EXPECT_EQ(stats_.failed, kWindow);
  EXPECT_EQ(statuses(), (std::map<Status, u64>{{Status::local_length, 1}, {Status::flushed, kWindow - 1}}));
}

}  // namespace
}  // namespace doorbell::rdma
