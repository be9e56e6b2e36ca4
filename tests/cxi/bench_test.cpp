// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Measurements of `doorbell cxi`, end to end with the software Cassini: puts, gets, IDC, and each kind of
// fault.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include "cxi/port.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "model/faults.hpp"
#include "rma/bench.hpp"

namespace doorbell::cxi {
namespace {

using model::Fault;
using rma::BenchOptions;
using rma::BenchResult;
using rma::Op;

BenchOptions usual(Op op = Op::write, bool restricted = true) {
  BenchOptions o = bench_of_puts(restricted);
  o.op = op;
  o.iterations = 200;
  return never_late(o);
}

void run_clean(const BenchOptions& o) {
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  ASSERT_EQ(r.cells.size(), 2 * o.sizes.size());
  for (const report::Cell& cell : r.cells) {
    SCOPED_TRACE(cell.cell.dump());
    for (const auto& [kind, n] : cell.errors) EXPECT_EQ(n, 0u) << kind;
    EXPECT_EQ(cell.verify.failed(), 0u);
    EXPECT_EQ(cell.verify.checked, cell.metrics.ops);
    EXPECT_EQ(cell.metrics.ops, o.iterations * cell.cell.at("queue_pairs").get<u32>());
    EXPECT_EQ(cell.path, "cxi");
  }
}

TEST(CxiBench, PutsAndGetsOfAllSizes) {
  for (const Op op : {Op::write, Op::read}) {
    BenchOptions o = usual(op);
    o.sizes = {0, 1, 31, 64, 512, 2047, 2048, 2049, 65536};
    o.iterations = 60;
    run_clean(o);
    o.sizes = {4u << 20};
    o.iterations = 4;
    run_clean(o);
  }
}

TEST(CxiBench, DataInTheCommand) {
  BenchOptions o = usual();
  o.inline_below = 224;
  o.sizes = {0, 1, 15, 16, 17, 48, 49, 112, 113, 224, 225};
  run_clean(o);
  for (const report::Cell& cell : rma::run_bench(o, {}).cells) {
    const bool in_command = cell.cell.at("size_bytes").get<u32>() <= 224;
    EXPECT_EQ(cell.cell.at("inlined").get<bool>(), in_command);
    EXPECT_EQ(cell.extra.at("model").at("idc_puts").get<u64>(), in_command ? cell.metrics.ops : 0)
        << cell.cell.dump();
  }
}

TEST(CxiBench, UnrestrictedOnes) {
  for (const Op op : {Op::write, Op::read}) {
    BenchOptions o = usual(op, false);
    o.sizes = {0, 1, 192, 2049, 65536};
    if (op == Op::write) o.inline_below = 192;
    run_clean(o);
    for (const report::Cell& cell : rma::run_bench(o, {}).cells)
      EXPECT_EQ(cell.extra.at("model").at("unrestricted").get<u64>(), cell.metrics.ops) << cell.cell.dump();
  }
  BenchOptions o = usual();
  o.rate = false;
  EXPECT_EQ(rma::run_bench(o, {}).cells.front().extra.at("model").at("unrestricted").get<u64>(), 0u);
  o = usual(Op::write, false);
  o.rate = false;
  o.inline_below = 193;
  o.sizes = {193};
  EXPECT_THROW((void)rma::run_bench(o, {}), Error);
}

TEST(CxiBench, OneOffsetForAll) {
  BenchOptions o = usual();
  o.sizes = {4096};
  o.one_offset = true;
  EXPECT_THROW((void)rma::run_bench(o, {}), Error) << "what overwrites each other cannot be checked";
  o.verify = false;
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_FALSE(r.failed);
  for (const report::Cell& cell : r.cells) {
    EXPECT_EQ(cell.metrics.ops, o.iterations);
    EXPECT_EQ(cell.cell.at("offsets"), "one");
    EXPECT_EQ(cell.extra.at("model").at("bytes").get<u64>(), o.iterations * 4096);
  }
}

TEST(CxiBench, QueuesAndShapes) {
  BenchOptions o = usual();
  o.queues = 5;
  o.threads = 2;
  o.sizes = {100};
  o.iterations = 1000;
  run_clean(o);
  o.queues = 1;
  for (const u32 batch : {1u, 3u, 64u}) {
    o.batch = batch;
    o.in_flight = 64;
    run_clean(o);
  }
}

TEST(CxiBench, SingleOperationsUseTheWindows) {
  BenchOptions o = usual();
  o.rate = false;
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_GT(r.cells.front().extra.at("model").at("window_writes").get<u64>(), 100u);
}

TEST(CxiBench, WhatIsRefused) {
  BenchOptions o = usual(Op::fetch_add);
  o.sizes = {8};
  EXPECT_THROW((void)rma::run_bench(o, {}), Error);
  o = usual();
  o.queues = 1000;
  test::expect_says(test::error_of([&] { (void)rma::run_bench(o, {}); }), "queues: 1000 is not in 1..128");
  o = usual();
  o.queues = 4;
  o.device = "cxi-model0:list-entries=3";
  test::expect_says(test::error_of([&] { (void)rma::run_bench(o, {}); }), "queues: 4 is not in 1..3");
  o = usual();
  o.device = "cxi-model0:nosuch=1";
  EXPECT_THROW((void)rma::run_bench(o, {}), Error);
}

// --- faults ------------------------------------------------------------------------------------------------

BenchOptions faulty(Fault fault, double probability) {
  BenchOptions o = usual();
  o.sizes = {256};
  o.latency = false;
  o.iterations = 2000;
  o.batch = 4;
  o.faults = only(fault, probability);
  return o;
}

TEST(CxiFaults, FlippedBytes) {
  for (const auto& [op, check_threads] :
       {std::pair(Op::write, 0u), {Op::read, 0u}, {Op::write, 2u}, {Op::read, 3u}}) {
    BenchOptions o = faulty(Fault::corrupt, 0.02);
    o.op = op;
    o.check_threads = check_threads;
    const BenchResult r = rma::run_bench(o, {});
    EXPECT_TRUE(r.failed);
    EXPECT_GT(injected(r, Fault::corrupt), 0u);
    EXPECT_EQ(r.cell().verify.corrupt, injected(r, Fault::corrupt));
    EXPECT_EQ(r.cell().verify.failed(), r.cell().verify.corrupt);
  }
}

TEST(CxiFaults, AcknowledgedButNotDone) {
  const BenchResult r = rma::run_bench(faulty(Fault::stale, 0.02), {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::stale), 0u);
  EXPECT_EQ(r.cell().verify.missing + r.cell().verify.stale, injected(r, Fault::stale));
}

TEST(CxiFaults, DataAtAnotherPlace) {
  const BenchResult r = rma::run_bench(faulty(Fault::misplace, 0.01), {});
  EXPECT_TRUE(r.failed);
  EXPECT_GE(r.cell().verify.failed(), injected(r, Fault::misplace));
  EXPECT_GT(injected(r, Fault::misplace), 0u);
}

TEST(CxiFaults, ABadReturnCodeStopsTheQueueAndTheNextRepeatStartsAnew) {
  BenchOptions o = faulty(Fault::error, 0.01);
  o.device = "cxi-model0:nack=3";
  o.repeats = 3;
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell().repeats.size(), 3u);
  EXPECT_GT(injected(r, Fault::error), 0u);
  const auto& codes = r.cell().extra.at("cxi").at("completion_statuses");
  EXPECT_EQ(codes.at("PT_DISABLED").get<u64>(), injected(r, Fault::error)) << codes.dump();
  EXPECT_EQ(errors(r, "completion"), injected(r, Fault::error));
  EXPECT_EQ(errors(r, "timeout"), 0u);
  EXPECT_EQ(r.cell().verify.failed(), 0u) << "what was refused is not bad data, whichever operation it was";
}

TEST(CxiFaults, AcknowledgedTwice) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a count too many ends operations while the device works on them: the race is the fault";
#endif
  const BenchResult r = rma::run_bench(faulty(Fault::duplicate, 0.005), {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::duplicate), 0u);
  // A count too many ends an operation too early, and is one too many at the end.
  EXPECT_GT(r.cell().verify.duplicated, 0u);
  EXPECT_LE(r.cell().verify.duplicated, injected(r, Fault::duplicate));
}

TEST(CxiFaults, LostAcknowledgements) {
  BenchOptions o = faulty(Fault::drop, 0.01);
  BenchResult r;
  test::with_longer_times([&](double scale) {
    o.timeout_s = 0.25 * scale;
    r = rma::run_bench(o, {});
    return errors(r, "timeout") == injected(r, Fault::drop);
  });
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::timeout);
  // A counter cannot tell which acknowledgement is missing: at the end as many operations wait as were lost.
  EXPECT_EQ(errors(r, "timeout"), injected(r, Fault::drop));
}

TEST(CxiFaults, LateAcknowledgements) {
  BenchOptions o = faulty(Fault::delay, 0.005);
  o.iterations = 400;
  // A counter does not tell which acknowledgement is late: only what is missing when all others have come is
  // seen. Where the others take longer than the delay, none is.
  BenchResult r;
  test::with_longer_times([&](double scale) {
    o.late_after_s = 0.05 * scale;
    o.device = "cxi-model0:delay=" + std::to_string(0.1 * scale);
    r = rma::run_bench(o, {});
    return errors(r, "late") > 0;
  });
  EXPECT_TRUE(r.failed);
  EXPECT_GT(errors(r, "late"), 0u);
  EXPECT_EQ(errors(r, "timeout"), 0u);
}

TEST(CxiFaults, TheDeviceGoesAway) {
  const BenchResult r = rma::run_bench(faulty(Fault::removal, 0.01), {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::removed);
  EXPECT_EQ(errors(r, "removal"), 1u);
  EXPECT_EQ(injected(r, Fault::removal), 1u);
}

TEST(CxiFaults, TheDeviceGoesAwayAtACommandInAWindow) {
  // Single operations go through the launch page's windows, not through the ring.
  BenchOptions o = faulty(Fault::removal, 0.01);
  o.latency = true;
  o.rate = false;
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_GT(r.cell().extra.at("model").at("window_writes").get<u64>(), 0u);
  EXPECT_EQ(r.stop_reason, StopReason::removed);
  EXPECT_EQ(errors(r, "removal"), 1u);
  EXPECT_EQ(injected(r, Fault::removal), 1u);
}

TEST(CxiFaults, AnEntryThatIsDisabledInMidRun) {
  BenchOptions o = faulty(Fault::drop, 0);
  o.device = "cxi-model0:pte-disable=700";
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(r.cell().extra.at("cxi").at("completion_statuses").at("PT_DISABLED").get<u64>(), 0u);
}

TEST(CxiFaults, AReadPointerThatStaysBehind) {
  BenchOptions o = faulty(Fault::drop, 0);
  o.device = "cxi-model0:stuck-read=50";
  const BenchResult r = rma::run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(r.cell().extra.at("cxi").at("completion_statuses").at("RESOURCE_BUSY").get<u64>(), 0u);
}

}  // namespace
}  // namespace doorbell::cxi
