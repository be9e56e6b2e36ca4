// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Measurements of `doorbell rdma`, end to end with the models of the four NICs: operations, sizes,
// connections, queue shapes.

#include "rdma/bench.hpp"
#include "rdma/nic_port.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "eventually.hpp"
#include "formats.hpp"
#include "model/faults.hpp"
#include "refused.hpp"
#include "sanitized.hpp"

namespace doorbell::rdma {
namespace {

BenchOptions usual(Provider provider) {
  BenchOptions o;
  o.provider = provider;
  o.iterations = test::kSanitized ? 100 : 200;  // more than the window
  return never_late(o);
}

constexpr Op kOps[] = {Op::write,    Op::write_imm, Op::read,        Op::send,
                       Op::send_imm, Op::fetch_add, Op::compare_swap};

std::string title(const BenchOptions& o) {
  return std::string(name(o.provider)) + " " + std::string(name(o.op)) + " size " +
         std::to_string(o.sizes.front()) + (o.ends == Ends::pair ? " pair" : " self") + " batch " +
         std::to_string(o.batch) + " inline " + std::to_string(o.inline_below);
}

void run_clean(const BenchOptions& o) {
  SCOPED_TRACE(title(o));
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  ASSERT_EQ(r.cells.size(), o.sizes.size() * ((o.latency ? 1u : 0u) + (o.rate ? 1u : 0u)));
  for (const report::Cell& cell : r.cells) {
    SCOPED_TRACE(cell.cell.dump());
    for (const auto& [kind, n] : cell.errors) EXPECT_EQ(n, 0u) << kind;
    EXPECT_EQ(cell.verify.failed(), 0u);
    EXPECT_GE(cell.verify.checked, cell.metrics.ops);
    EXPECT_EQ(cell.metrics.ops, o.iterations * o.repeats * cell.cell.at("queue_pairs").get<u32>());
    EXPECT_EQ(cell.extra.at("model").at("error_completions"), 0u);
    EXPECT_EQ(cell.extra.at("model").at("invalid_doorbell_values"), 0u);
  }
}

class Each : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, Each, testing::ValuesIn(vendors()), provider_name);

TEST_P(Each, OperationsAndSizes) {
  for (const Op op : kOps) {
    BenchOptions o = usual(GetParam());
    o.op = op;
    o.sizes = is_atomic(op) ? std::vector<u32>{8}
                            : std::vector<u32>{0, 1, 31, 32, 33, 256, 511, 512, 513, 1024, 4096, 65536};
    o.iterations = 60;
    if (test::kSanitized) o.iterations = 10, o.in_flight = 4;
    run_clean(o);
    if (is_atomic(op)) continue;
    o.sizes = {1 << 20};
    o.iterations = 5;
    if (test::kSanitized) o.iterations = o.in_flight = 2;
    run_clean(o);
  }
}

TEST_P(Each, TheLargest) {
  for (const Op op : {Op::write, Op::read, Op::send}) {
    BenchOptions o = usual(GetParam());
    o.op = op;
    o.sizes = {test::kSanitized ? 1u << 20 : 64u << 20};
    o.iterations = 2;
    o.in_flight = 2;
    run_clean(o);
  }
}

TEST_P(Each, BetweenTwoQueuePairs) {
  for (const Op op : kOps) {
    BenchOptions o = usual(GetParam());
    o.op = op;
    o.ends = Ends::pair;
    o.sizes = {is_atomic(op) ? kAtomicBytes : 777u};
    run_clean(o);
  }
}

TEST_P(Each, BatchesWindowsAndSignals) {
  for (const u32 batch : {1u, 3u, 64u})
    for (const u32 signal : {1u, 2u, 64u})
      for (const u32 window : {64u, 100u, 1000u}) {
        BenchOptions o = usual(GetParam());
        o.sizes = {64};
        o.latency = false;
        o.batch = batch;
        o.signal_every = signal;
        o.in_flight = window;
        o.iterations = test::kSanitized ? 1500 : 3000;
        run_clean(o);
      }
}

TEST_P(Each, ManyQueuePairs) {
  for (const Op op : {Op::write, Op::write_imm, Op::read, Op::fetch_add}) {
    BenchOptions o = usual(GetParam());
    o.op = op;
    o.sizes = {is_atomic(op) ? kAtomicBytes : 128u};
    o.queues = 12;
    o.threads = 2;
    o.device = "model:threads=2";
    run_clean(o);
  }
}

TEST_P(Each, RingsWrapManyTimes) {
  BenchOptions o = usual(GetParam());
  o.sizes = {48};
  o.latency = false;
  o.in_flight = 6;
  o.batch = 3;
  o.iterations = test::kSanitized ? 70'000 : 140'000;  // beyond the 16 bits of some counters
  run_clean(o);
}

/// The others refuse: see Refusals.
class Inlining : public testing::TestWithParam<Provider> {};
INSTANTIATE_TEST_SUITE_P(Rdma, Inlining, testing::ValuesIn(inlining_providers()), provider_name);

TEST_P(Inlining, OfEveryLength) {
  const u32 most = std::min(shape_of(GetParam()).max_inline, 96u);
  for (u32 bytes = 1; bytes <= most; bytes += bytes < 40 ? 1 : 7) {
    BenchOptions o = usual(GetParam());
    o.sizes = {bytes};
    o.latency = false;
    o.inline_below = most;
    o.in_flight = 7;
    o.batch = 2;
    o.op = bytes % 3 == 0 ? Op::write_imm : bytes % 3 == 1 ? Op::write : Op::send;
    run_clean(o);
  }
}

TEST_P(Each, ByTime) {
  BenchOptions o = usual(GetParam());
  o.sizes = {256};
  o.repeats = 2;
  BenchResult r;
  double off = 0;  // in parts of the time that was asked for
  test::with_longer_times([&](double scale) {
    o.duration_s = 0.05 * scale;
    o.warmup_s = 0.01 * scale;
    r = run_bench(o, {});
    off = r.cells.size() == 2 ? r.cells[1].metrics.elapsed_s / o.duration_s - 1 : 1;
    return std::abs(off) <= 0.8;
  });
  EXPECT_FALSE(r.failed);
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_EQ(r.cells[1].repeats.size(), 2u);
  EXPECT_NEAR(off, 0, 0.8);
}

TEST_P(Each, EveryPartGoesByTimeWhereThereIsATime) {
  BenchOptions o = usual(GetParam());
  o.sizes = {64};
  o.iterations = 1;
  for (const bool ping_pong : {false, true}) {
    o.latency = o.rate = !ping_pong;
    o.ping_pong = ping_pong;
    BenchResult r;
    test::with_longer_times([&](double scale) {
      o.duration_s = 0.05 * scale;
      r = run_bench(o, {});
      return std::ranges::all_of(r.cells, [](const report::Cell& c) { return c.metrics.ops > 1; });
    });
    EXPECT_FALSE(r.failed);
    for (const report::Cell& cell : r.cells) EXPECT_GT(cell.metrics.ops, 1u) << cell.cell.dump();
  }
}

TEST(Rdma, ATimeShorterThanATickIsATime) {
  BenchOptions o = usual(Provider::mlx5);
  o.iterations = 1;
  o.warmup_s = 1e-10;
  EXPECT_FALSE(run_bench(o, {}).failed);
  o.duration_s = 1e-10;
  EXPECT_FALSE(run_bench(o, {}).failed);
}

TEST(Rdma, StepsOfAnOperation) {
  BenchOptions o = usual(Provider::mlx5);
  o.sizes = {65536};
  o.iterations = 20;
  o.substeps = o.ping_pong = true;
  const BenchResult r = run_bench(o, {});
  ASSERT_FALSE(r.failed);
  ASSERT_EQ(r.cells.size(), 3u);
  for (const report::Cell& cell : r.cells) {
    SCOPED_TRACE(cell.cell.dump());
    const report::Substeps& s = cell.substeps_ns;
    EXPECT_FALSE(s.enqueue || s.cq_doorbell) << "no steps of their own";
    if (cell.cell.at("part") == "ping-pong") {
      EXPECT_FALSE(s.payload || s.build || s.total) << "its messages overlap";
      continue;
    }
    EXPECT_EQ(cell.metrics.ops, o.iterations);
    ASSERT_TRUE(s.build && s.sq_doorbell && s.cq_poll);
    ASSERT_TRUE(s.payload);
    ASSERT_TRUE(s.total);
    EXPECT_GT(*s.payload, 0);
    EXPECT_LE(*s.build + *s.sq_doorbell + *s.cq_poll, *s.total);
  }
}

/// A device that is there for the first cells only.
std::unique_ptr<Port> open_twice(const PortRequest& request) {
  static u32 opened = 0;
  if (++opened % 3 == 0) throw Error("the NIC", "it was pulled out", "put it back", ExitCode::absent);
  return std::make_unique<NicPort>(open_device({.spec = request.spec, .provider = Provider::mlx5}));
}

TEST(Rdma, WhatWasMeasuredIsKeptWhenALaterCellFails) {
  BenchOptions o = usual(Provider::mlx5);
  o.iterations = 10;
  o.latency = false;
  o.sizes = {8, 16, 32, 64};
  o.open = open_twice;
  const BenchResult r = run_bench(o, {});
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_EQ(r.cells[1].metrics.ops, 10u);
  EXPECT_EQ(r.stop_reason, StopReason::broken);
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.code, ExitCode::absent);
  ASSERT_FALSE(r.warnings.empty());
  EXPECT_EQ(r.warnings.back(), "the NIC: it was pulled out; put it back");
}

TEST(Rdma, WithoutACellAnErrorIsAnError) {
  BenchOptions o = usual(Provider::mlx5);
  o.open = [](const PortRequest&) -> std::unique_ptr<Port> {
    throw Error("the NIC", "it is not here", "", ExitCode::absent);
  };
  EXPECT_THROW((void)run_bench(o, {}), Error);
}

TEST(Rdma, Refusals) {
  BenchOptions o = usual(Provider::ernic);
  o.inline_below = 16;
  o.sizes = {8};
  expect_refused(o, "inlined bytes");
  o = usual(Provider::mlx5);
  o.op = Op::fetch_add;
  o.sizes = {16};
  expect_refused(o, "size");
  o = usual(Provider::mlx5);
  o.in_flight = 4;
  o.batch = 8;
  expect_refused(o, "operations in flight");
  o = usual(Provider::mlx5);
  o.queue_memory = Place::gpu;
  expect_refused(o, "queue memory");
  o = usual(Provider::bnxt);
  o.device = "bnxt_re0";
  expect_refused(o, "bnxt_re0");
  o = usual(Provider::mlx5);
  o.device = "model:no-such-key=1";
  expect_refused(o, "no-such-key");
}

}  // namespace
}  // namespace doorbell::rdma
