// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ping-pong between two queue pairs of the NIC models: both ends check every message and find every fault.

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "eventually.hpp"
#include "formats.hpp"
#include "model/faults.hpp"
#include "rdma/bench.hpp"
#include "rdma/nic_port.hpp"
#include "refused.hpp"
#include "rma/ping_pong_end.hpp"
#include "sanitized.hpp"

namespace doorbell::rdma {
namespace {

using model::Fault;

BenchOptions usual(Provider provider, Op op) {
  BenchOptions o;
  o.device = tested();
  o.provider = provider;
  o.op = op;
  o.latency = o.rate = false;
  o.ping_pong = true;
  o.sizes = {256};
  // Odd: the next phase begins with the other slot of receives that were left. ThreadSanitizer makes and
  // checks some 20 MB/s.
  o.iterations = test::kSanitized ? 13 : 61;
  o.repeats = 3;
  return never_late(o);
}

BenchOptions faulty(Provider provider, Op op, Fault fault, double probability) {
  BenchOptions o = usual(provider, op);
  o.iterations = 600;
  o.repeats = 1;
  o.faults = only(fault, probability);
  return o;
}

class PingPongs : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, PingPongs, testing::ValuesIn(vendors()), provider_name);

TEST_P(PingPongs, EveryMessageIsChecked) {
  for (const Op op : {Op::write, Op::send}) {
    BenchOptions o = usual(GetParam(), op);
    o.sizes = {1, 2, 16, 17, 64, 511, 512, 513, 514, 4096, 70000};
    if (op == Op::send) o.sizes.push_back(0);
    const BenchResult r = run_bench(o, {});
    EXPECT_FALSE(r.failed);
    ASSERT_EQ(r.cells.size(), o.sizes.size());
    for (const report::Cell& cell : r.cells) {
      SCOPED_TRACE(cell.cell.dump());
      for (const auto& [kind, n] : cell.errors) EXPECT_EQ(n, 0u) << kind;
      EXPECT_EQ(cell.cell.at("part"), "ping-pong");
      EXPECT_EQ(cell.cell.at("connection"), "pair");
      EXPECT_EQ(cell.metrics.ops, o.iterations);
      EXPECT_EQ(cell.verify.checked, 2 * o.iterations * o.repeats);  // messages and answers
      EXPECT_EQ(cell.verify.failed(), 0u);
      EXPECT_EQ(cell.extra.at("model").at("error_completions"), 0u);
    }
  }
}

TEST_P(PingPongs, LatencyIsHalfOfTheRoundTrip) {
  BenchOptions o = usual(GetParam(), Op::write);
  o.iterations = test::kSanitized ? 200 : 2000;
  o.verify = false;
  // Unverified, nothing but the ways there and back takes time; on a busy machine a thread may be away
  // between two of them, but not in every run.
  double share = 0;
  for (int run = 0; run < 20 && share < 0.5; ++run) {
    const report::Cell cell = run_bench(o, {}).cells.at(0);
    ASSERT_TRUE(cell.metrics.latency_ns.mean.has_value());
    share = 2 * *cell.metrics.latency_ns.mean * static_cast<double>(cell.metrics.ops) /
            (cell.metrics.elapsed_s * 1e9);
    EXPECT_LE(share, 1);
    EXPECT_EQ(cell.verify.checked, 0u);
  }
  EXPECT_GE(share, 0.5);
}

TEST_P(PingPongs, AWarmUpEnds) {
  BenchOptions o = usual(GetParam(), Op::send);
  o.warmup_s = 0.02;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cells.at(0).metrics.ops, o.iterations);
}

class InlinedPingPongs : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, InlinedPingPongs, testing::ValuesIn(inlining_providers()), provider_name);

TEST_P(InlinedPingPongs, EndWell) {
  for (const Op op : {Op::write, Op::send}) {
    BenchOptions o = usual(GetParam(), op);
    o.sizes = {1, 8, 31, 32};
    o.inline_below = 32;
    EXPECT_FALSE(run_bench(o, {}).failed);
  }
}

TEST_P(PingPongs, DamageIsCounted) {
  for (const Op op : {Op::write, Op::send})
    for (const u32 bytes : {1u, 4u, 700u}) {  // of one byte, it is the byte by which a write is seen
      BenchOptions o = faulty(GetParam(), op, Fault::corrupt, 0.05);
      if (test::kSanitized) o.iterations = 200;
      o.sizes = {bytes};
      const BenchResult r = run_bench(o, {});
      EXPECT_TRUE(r.failed);
      const report::Cell& cell = r.cells.at(0);
      EXPECT_GT(injected(r, Fault::corrupt), 0u);
      EXPECT_EQ(cell.verify.failed(), injected(r, Fault::corrupt)) << name(op) << " " << bytes;
      EXPECT_EQ(cell.metrics.ops, o.iterations);
    }
}

TEST_P(PingPongs, WhatNeverArrivesEndsAtTheDeadline) {
  BenchOptions o = faulty(GetParam(), Op::write, Fault::stale, 0.05);
  BenchResult r;
  test::with_longer_times([&](double scale) {
    o.timeout_s = 0.1 * scale;
    r = run_bench(o, {});
    return injected(r, Fault::stale) == 1;
  });
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::timeout);
  EXPECT_EQ(errors(r, "timeout"), 1u);
  EXPECT_EQ(errors(r, "identity"), 0u);
  EXPECT_EQ(injected(r, Fault::stale), 1u);
}

TEST_P(PingPongs, ErrorStatusStopsItAndTheNextRepeatRecovers) {
  for (const Op op : {Op::write, Op::send}) {
    BenchOptions o = faulty(GetParam(), op, Fault::error, 0.02);
    o.repeats = 3;
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    const report::Cell& cell = r.cells.at(0);
    EXPECT_EQ(cell.repeats.size(), 3u);
    EXPECT_GT(injected(r, Fault::error), 0u);
    EXPECT_EQ(cell.errors.at("completion"), injected(r, Fault::error));
    EXPECT_EQ(cell.errors.at("identity"), 0u);
    EXPECT_EQ(cell.errors.at("timeout"), 0u);
    // Also where the answer had come before the failure was reported.
    EXPECT_EQ(cell.metrics.latency_ns.count, cell.metrics.ops);
  }
}

TEST_P(PingPongs, AMessageThatFailedIsInNoFigure) {
  // The answer comes before the completion of what it answers: only that is reported as failed, late.
  BenchOptions o = faulty(GetParam(), Op::write, Fault::drop, 1);
  o.iterations = 1;
  o.timeout_s = 0.3;
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(errors(r, "timeout"), 1u);
  EXPECT_EQ(r.cells.at(0).metrics.ops, 0u);
  EXPECT_EQ(r.cells.at(0).metrics.latency_ns.count, 0u);
}

TEST_P(PingPongs, CompletionsThatComeTwiceOrNever) {
  BenchOptions o = faulty(GetParam(), Op::write, Fault::duplicate, 0.05);
  o.signal_every = 2;
  const BenchResult twice = run_bench(o, {});
  EXPECT_TRUE(twice.failed);
  EXPECT_GT(injected(twice, Fault::duplicate), 0u);
  EXPECT_EQ(twice.cells.at(0).verify.duplicated, injected(twice, Fault::duplicate));

  o = faulty(GetParam(), Op::write, Fault::drop, 0.04);
  o.signal_every = 1;
  BenchResult never;
  const auto missed = [&] { return errors(never, "skipped") + errors(never, "timeout"); };
  test::with_longer_times([&](double scale) {
    o.timeout_s = 0.1 * scale;
    never = run_bench(o, {});
    return missed() == injected(never, Fault::drop);
  });
  EXPECT_TRUE(never.failed);
  EXPECT_GT(injected(never, Fault::drop), 0u);
  EXPECT_EQ(missed(), injected(never, Fault::drop));
  EXPECT_EQ(errors(never, "identity"), 0u);
}

TEST_P(PingPongs, ACompletionThatComesLateIsCounted) {
  // The answer comes in time. Only the requests of the end that answers, or of the other one, tell.
  for (const Op op : {Op::write, Op::send}) {
    BenchOptions o = faulty(GetParam(), op, Fault::delay, 0.1);
    o.iterations = 20;
    o.signal_every = 1;
    o.device += ",delay=20ms";
    o.late_after_s = 0.01;
    const BenchResult r = run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_GT(injected(r, Fault::delay), 0u);
    EXPECT_GE(errors(r, "late"), injected(r, Fault::delay)) << name(op);
    EXPECT_LE(errors(r, "late"), 2 * o.iterations) << "a message is late once";
    EXPECT_EQ(r.cells.at(0).metrics.ops, o.iterations);
  }
}

TEST_P(PingPongs, WithoutAnyCompletionThereIsNoRoomAtLast) {
  BenchOptions o = faulty(GetParam(), Op::write, Fault::drop, 1);
  o.timeout_s = 0.3;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::timeout);
  EXPECT_LE(r.cells.at(0).metrics.ops, 32u);  // twice as many as ask for one completion
  EXPECT_EQ(r.cells.at(0).metrics.latency_ns.count, r.cells.at(0).metrics.ops);
  EXPECT_EQ(errors(r, "identity"), 0u);
}

/// As two processes have it: each end has a session of its own, and the answering one does not know when it
/// is over.
TEST_P(PingPongs, TheAnsweringEndAlone) {
  const auto device = open_device({.spec = "model", .provider = GetParam(), .use = {.queues = 2}});
  for (const Op op : {Op::write, Op::send}) {
    SessionShape shape;
    shape.ends = Ends::remote;
    shape.window = kPingPongSlots;
    shape.requests = 32;
    shape.ping_pong = true;
    shape.bytes = 100;
    NicPort first_port(*device), second_port(*device);
    Session first(first_port, nullptr, shape);
    shape.role = Role::responder;
    Session second(second_port, nullptr, shape);
    first_port.queues().connect(second_port.queues().addresses());
    second_port.queues().connect(first_port.queues().addresses());
    first.use(second.keys());
    second.use(first.keys());
    const auto plays = first.runner(1);
    const auto answers = second.runner(1);
    OpPhase p;
    p.op = op;
    p.verify = true;
    p.bytes = shape.bytes;
    p.window = shape.window;
    p.signal_every = 16;
    p.timeout_ticks = p.late_ticks = plays->ticks(60);
    p.check_ticks = plays->ticks(measure::kCheckIntervalS);
    for (const u64 count : {1u, 2u, 33u, 150u})  // rings of 32 requests wrap
      for (const bool count_known : {true, false}) {
        OpPhase other = p;
        other.role = Role::responder;
        first.queues()[0].count = count;
        second.queues()[0].count = count_known ? count : ~u64{0};
        incoming(other, PingPongMemory::of(second.queues()[0], false)).clear();
        std::atomic<bool> over = false;
        measure::PhaseOutcome theirs;
        std::thread thread([&] {
          theirs = answers->run(other, second.queues(), false,
                                [&](u64) { return over.load() ? Asked::stop : Asked::nothing; });
        });
        const measure::PhaseOutcome mine = plays->run(p, first.queues(), false, {});
        over = true;
        thread.join();
        for (const OpStats& s : {mine.queues[0], theirs.queues[0]}) {
          EXPECT_EQ(s.succeeded, count) << name(op) << " " << count_known;
          EXPECT_EQ(s.checked, count);
          EXPECT_EQ(s.failed + s.timed_out + s.corrupt + s.missing + s.stale + s.misplaced + s.duplicated +
                        s.skipped + s.protocol,
                    0u);
        }
        EXPECT_EQ(mine.queues[0].posted, count);
        p.generation += count + 2;
      }
  }
}

TEST_P(PingPongs, AStopLeavesAPartialResultAtOnce) {
  BenchOptions o = usual(GetParam(), Op::write);
  o.iterations = u64{1} << 40;
  o.signal_every = 1;  // so the request that is written and not sent asks for a completion
  measure::StopFlag stop;
  const u64 begin = wall_ns();
  const BenchResult r = run_bench(
      o, {.stop = &stop, .progress = [&](double, const std::string&) { (void)stop.request(SIGINT); }});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_EQ(errors(r, "identity"), 0u);
  EXPECT_LT(wall_ns() - begin, 30'000'000'000u) << "it waited for what was never sent";
}

TEST(PingPong, Refusals) {
  expect_refused(usual(Provider::mlx5, Op::read), "what is measured");
  BenchOptions o = usual(Provider::mlx5, Op::write);
  o.sizes = {8, 0};
  expect_refused(o, "size");
  o = usual(Provider::mlx5, Op::write);
  o.initiator = Initiator::gpu;
  expect_refused(o, "what is measured");
  o = usual(Provider::mlx5, Op::write);
  o.local_memory = Place::gpu;
  o.verify = false;
  expect_refused(o, "what is measured");
  o = usual(Provider::mlx5, Op::write);
  o.one_offset = true;
  o.verify = false;
  expect_refused(o, "offsets");
}

}  // namespace
}  // namespace doorbell::rdma
