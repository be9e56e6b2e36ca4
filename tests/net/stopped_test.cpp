// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A process that is stopped for longer than its limits: time in which it did not run makes no packet lost and
// no run timed out. A thread of it that stops is one that sleeps.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <thread>

#include "memory_queues.hpp"
#include "net/flow/ends.hpp"
#include "system/running_time.hpp"

namespace doorbell::net {
namespace {

constexpr u32 kStoppedPayload = 200;

TEST(RunningTime, CountsWhatLiesBetweenLooksUpToALimit) {
  RunningTime t(1000);
  EXPECT_EQ(t.look(1500), 500u);
  EXPECT_EQ(t.look(1500 + 3 * RunningTime::kMostNs), 500 + RunningTime::kMostNs);
  EXPECT_EQ(t.ran_ns(), 500 + RunningTime::kMostNs);
  EXPECT_EQ(t.away_ns(), 2 * RunningTime::kMostNs);
  EXPECT_EQ(t.look(1400), t.ran_ns()) << "a clock that goes back counts for nothing";
}

/// Takes nothing until its sender has been stopped in a wait.
class StoppedTx final : public TxQueue {
 public:
  explicit StoppedTx(std::shared_ptr<MemoryWire> wire) : tx_(std::move(wire), kStoppedPayload) {}
  [[nodiscard]] TxSlots slots() const override { return tx_.slots(); }
  u32 send(u64 first, u32 count, u32 bytes) override {
    // The receiver was stopped too, and comes a few looks later.
    if (waits_ < 5) return 0;
    return tx_.send(first, count, bytes);
  }
  [[nodiscard]] u64 completed() override { return tx_.completed(); }
  void wait(u64 limit_ns) override {
    std::this_thread::sleep_for(++waits_ == 2 ? std::chrono::milliseconds(600)
                                              : std::chrono::milliseconds(1));
    static_cast<void>(limit_ns);
  }
  [[nodiscard]] bool finish() override { return tx_.finish(); }

 private:
  MemoryTx tx_;
  u32 waits_ = 0;
};

TEST(NetStopped, ASenderThatDidNotRunHasNotWaitedForRoom) {
  auto wire = std::make_shared<MemoryWire>();
  std::vector<std::unique_ptr<TxQueue>> queues;
  queues.push_back(std::make_unique<StoppedTx>(wire));
  SendingOptions o;
  o.sender.payload_bytes = kStoppedPayload;
  o.timeout_s = 0.5;
  SendingEnd end(o, queues);
  const SendPhase p = end.run(0, 3, {});
  EXPECT_FALSE(p.stuck);
  EXPECT_EQ(p.sent, 3u);
}

/// Its reader is stopped in a wait when sending is over, and the last one comes meanwhile.
class StoppedRx final : public MemoryRx {
 public:
  StoppedRx(std::shared_ptr<MemoryWire> wire, std::function<void()> meanwhile)
      : MemoryRx(std::move(wire)), meanwhile_(std::move(meanwhile)) {}
  void wait(u64 limit_ns) override {
    if (!over || ++waits_ != 20) return MemoryRx::wait(limit_ns);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    meanwhile_();
  }
  std::atomic<bool> over{false};

 private:
  std::function<void()> meanwhile_;
  u32 waits_ = 0;
};

TEST(NetStopped, WhatCameWhileAReceiverDidNotRunIsNotLost) {
  for (const bool reliable : {false, true}) {
    auto wire = std::make_shared<MemoryWire>();
    std::vector<std::unique_ptr<TxQueue>> tx;
    tx.push_back(std::make_unique<MemoryTx>(wire, kStoppedPayload));
    SendingOptions so;
    so.sender.run_tag = 7;
    so.sender.payload_bytes = kStoppedPayload;
    SendingEnd sender(so, tx);
    std::vector<u8> kept;
    std::vector<std::unique_ptr<RxQueue>> rx;
    auto stopped = std::make_unique<StoppedRx>(wire, [&] {
      const std::scoped_lock lock(wire->mutex);
      wire->packets.push_back(kept);
    });
    StoppedRx& queue = *stopped;
    rx.push_back(std::move(stopped));
    ReceivingOptions ro;
    ro.receiver.run_tag = 7;
    ro.receiver.map_span = 4096;
    ro.reliable = reliable;
    ro.timeout_s = reliable ? 0.5 : 30;
    ro.settle_s = 0.5;
    LocalReceivingEnd receiver(ro, rx);
    // The last packet is on its way when sending is over.
    const SendPhase sent = sender.run(0, 2, {});
    ASSERT_EQ(sent.sent, 2u);
    kept = wire->packets.back();
    wire->packets.pop_back();
    receiver.begin();
    queue.over = true;
    const ReceivePhase p = receiver.end(sender.sent());
    EXPECT_EQ(p.counts.unique, 2u) << reliable;
    EXPECT_FALSE(p.timed_out) << reliable;
    EXPECT_GE(p.away_s, 0.5);
  }
}

/// Somebody gives a thread's core to others in mid-run (taskset, a cpuset): it goes on, wherever it runs.
TEST(NetStopped, ACoreThatWasTakenAwayIsNotNamed) {
  const std::vector<int> cores = allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "there is one core";
  for (const bool taken : {false, true}) {
    Threads threads("rx", 1, {cores[0]}, [&](u32, ThreadUse*) {
      cpu_set_t set;
      CPU_ZERO(&set);
      CPU_SET(cores[1], &set);
      const int failed = taken ? pthread_setaffinity_np(pthread_self(), sizeof set, &set) : 0;
      ASSERT_EQ(failed, 0);
    });
    threads.join();
    EXPECT_EQ(threads.uses().front().core, taken ? -1 : cores[0]);
  }
}

}  // namespace
}  // namespace doorbell::net
