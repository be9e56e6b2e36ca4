// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Measurements of `doorbell nvme`, end to end with the model: shapes, queues, refusals, stops.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "bench_rig.hpp"

namespace doorbell::nvme {
namespace {

using namespace bench_rig;

TEST(Bench, Sizes) {
  for (const u32 lba : {512u, 4096u})
    for (const u32 blocks : {1u, 2u, 7u, 8u, 9u, 16u, 24u, 255u, 256u}) {
      BenchOptions o = usual();
      o.controller += ",lba=" + std::to_string(lba);
      o.lbas_per_io = blocks;
      o.write_io = o.read_io = 60;
      o.batch = 4;
      run_clean(o);
    }
}

TEST(Bench, ChainedPrpLists) {
  BenchOptions o = usual();
  o.controller = "model:capacity=128Mi,lba=4096,mdts=0";
  o.write_io = o.read_io = 5;
  o.batch = 2;
  for (const u32 blocks : {513u, 514u, 1023u, 1024u, 1025u}) {
    o.lbas_per_io = blocks;
    run_clean(o);
  }
  o.controller = "model:capacity=128Mi,mdts=0";
  o.lbas_per_io = 65536;  // all that a command can name: 32 MiB
  o.batch = 1;
  o.write_io = o.read_io = 1;
  run_clean(o);
}

TEST(Bench, QueueShapes) {
  for (const u32 queues : {1u, 2u, 3u, 8u})
    for (const u32 length : {2u, 3u, 8u, 1024u})
      for (const u32 batch : {1u, 2u, 7u, 64u}) {
        if (batch >= length) continue;
        BenchOptions o = usual();
        o.num_queues = queues;
        o.queue_length = length;
        o.batch = batch;
        o.random = length == 8;
        run_clean(o);
      }
}

TEST(Bench, ADefaultLengthIsAsTheControllerTakesIt) {
  BenchOptions o = usual();
  o.controller = "model:capacity=64Mi,entries=100";
  o.batch = 64;
  EXPECT_THROW((void)run_bench(o, {}), Error) << "1024 entries that were asked for";
  o.default_queue_length = true;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().cell["queue_length"], 100);
  EXPECT_EQ(r.cell().cell["in_flight"], 99);
}

TEST(Bench, QueuesThatWrapManyTimes) {
  BenchOptions o = usual();
  o.write_io = o.read_io = 20'000;
  o.queue_length = 5;
  o.batch = 3;
  o.num_queues = 2;
  run_clean(o);
  o.queue_length = 100;
  o.batch = 33;
  o.in_flight = 99;
  run_clean(o);
}

TEST(Bench, SeveralPassesOverTheSpan) {
  BenchOptions o = usual();
  o.controller = "model:capacity=1Mi,lba=4096";  // 256 blocks
  o.write_io = 1000;
  o.read_io = 1000;
  o.num_queues = 3;
  o.batch = 8;
  run_clean(o);
  o.random = true;
  run_clean(o);
  o.repeats = 3;
  const BenchResult r = run_bench(o, {});
  expect_clean(r, 3000);
  EXPECT_EQ(r.cell().repeats.size(), 3u);
}

TEST(Bench, ShadowDoorbells) {
  for (const u32 queues : {1u, 4u}) {
    BenchOptions o = usual();
    o.shadow_doorbells = true;
    o.num_queues = queues;
    o.batch = 4;
    o.write_io = o.read_io = 3000;
    run_clean(o);
    o.queue_length = 6;
    run_clean(o);
  }
}

/// One page of doorbells does not hold every queue's at a wide stride; the rest ring registers.
TEST(Bench, ShadowDoorbellsBeyondTheirPage) {
  BenchOptions o = usual();
  o.controller += ",stride=4";
  o.shadow_doorbells = true;
  o.num_queues = 40;
  o.queue_length = 8;
  run_clean(o);
}

TEST(Bench, Strides) {
  for (u32 stride = 0; stride <= 4; ++stride) {
    BenchOptions o = usual();
    o.controller += ",stride=" + std::to_string(stride);
    o.num_queues = 5;
    run_clean(o);
  }
}

TEST(Bench, DeviceThreads) {
  for (const u32 threads : {1u, 2u, 5u}) {
    BenchOptions o = usual();
    o.controller += ",threads=" + std::to_string(threads);
    o.num_queues = 5;
    o.threads = 2;
    o.batch = 8;
    run_clean(o);
  }
}

TEST(Bench, LatencyAndBandwidthAreLowerBounds) {
  BenchOptions o = usual();
  o.controller += ",latency=2ms";
  o.write_io = o.read_io = 20;
  BenchResult r = run_bench(o, {});
  expect_clean(r, 20);
  EXPECT_GE(r.cell().metrics.latency_ns.min, 2e6 * 0.98);  // the clock's calibration
  o.controller = "model:capacity=64Mi,bandwidth=100M";
  o.lbas_per_io = 128;
  o.batch = 8;
  o.write_io = o.read_io = 100;  // 13 MB
  r = run_bench(o, {});
  expect_clean(r, 100);
  EXPECT_LE(r.cell().metrics.bytes_per_s, 102e6);
}

TEST(Bench, NullMediaVerifiesNothingAndSaysSo) {
  BenchOptions o = usual();
  o.controller = "model:media=null";
  o.write_io = 0;
  o.read_io = 5000;
  o.batch = 16;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.checked, 0u);
  EXPECT_EQ(r.cell().verify.mode, "none");
  ASSERT_EQ(r.warnings.size() >= 1, true);
}

TEST(Bench, ReadsOfBlocksNeverWritten) {
  BenchOptions o = usual();
  o.write_io = 0;
  o.read_io = 300;
  BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.unverifiable, 300u);
  o.write_io = 100;
  r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().verify.checked, 100u);
  EXPECT_EQ(r.cell().verify.unverifiable, 200u);
}

TEST(Bench, SampledVerification) {
  BenchOptions o = usual();
  o.write_io = o.read_io = 4000;
  o.batch = 16;
  o.verify_sample = 0.25;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_NEAR(static_cast<double>(r.cell().verify.checked), 1000, 200);
  EXPECT_EQ(r.cell().verify.mode, "sample=0.25");
}

TEST(Bench, TimingVariants) {
  BenchOptions o = usual();
  o.less_timing = true;
  BenchResult r = run_bench(o, {});
  expect_clean(r, 400);
  EXPECT_EQ(r.cell().metrics.latency_ns.count, 0u);
  EXPECT_EQ(r.cell().metrics.ops, 800u);
  EXPECT_GT(r.cell().metrics.elapsed_s, 0);
  o.less_timing = false;
  o.substeps = true;
  r = run_bench(o, {});
  expect_clean(r, 400);
  EXPECT_TRUE(r.cell().substeps_ns.build && r.cell().substeps_ns.enqueue &&
              r.cell().substeps_ns.sq_doorbell && r.cell().substeps_ns.cq_poll &&
              r.cell().substeps_ns.cq_doorbell && r.cell().substeps_ns.total);
  o.substeps = false;
  o.write_io = 0;
  o.read_io = 1;
  o.duration_s = 0.05;
  o.warmup_s = 0.02;
  o.repeats = 2;
  r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell().repeats.size(), 2u);
  EXPECT_GE(r.cell().metrics.elapsed_s, 0.04);
}

TEST(Bench, CountsAddUp) {
  BenchOptions o = usual();
  o.num_queues = 3;
  o.batch = 4;
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell().extra.at("model").at("reads"), 400u);
  EXPECT_EQ(r.cell().extra.at("model").at("writes"), 400u);
  EXPECT_EQ(r.cell().extra.at("nvme").at("submitted"), 800u);
  EXPECT_EQ(r.cell().metrics.bytes, 800u * 512);
  EXPECT_EQ(r.cell().verify.checked_bytes, 400u * 512);
  EXPECT_EQ(r.cell().device_kind, "model");
  EXPECT_EQ(r.cell().initiator_kind, "cpu");
}

// --- refusals -------------------------------------------------------------------------------------

void expect_refused(const BenchOptions& o, const std::string& subject) {
  try {
    (void)run_bench(o, {});
    FAIL() << "accepted, expected a refusal of " << subject;
  } catch (const Error& e) {
    EXPECT_EQ(e.subject(), subject) << e.what();
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
}

TEST(Bench, RefusesWhatCannotBe) {
  const auto with = [](auto change) {
    BenchOptions o = usual();
    change(o);
    return o;
  };
  expect_refused(with([](auto& o) { o.write_io = o.read_io = 0; }), "--read-io");
  expect_refused(with([](auto& o) { o.queue_length = 1; }), "--queue-length");
  expect_refused(with([](auto& o) { o.queue_length = 5000; }), "--queue-length");
  expect_refused(with([](auto& o) { o.controller = "model:entries=4", o.queue_length = 8; }),
                 "--queue-length");
  expect_refused(with([](auto& o) { o.batch = 8, o.queue_length = 8; }), "--batch-size");
  expect_refused(with([](auto& o) { o.in_flight = 8, o.queue_length = 8; }), "--in-flight");
  expect_refused(with([](auto& o) { o.in_flight = 1024, o.queue_length = 2048; }), "--in-flight");
  expect_refused(with([](auto& o) { o.in_flight = 2, o.batch = 4; }), "--in-flight");
  expect_refused(with([](auto& o) { o.lbas_per_io = 4097; }), "--lbas-per-io");
  expect_refused(with([](auto& o) { o.controller = "model:mdts=1", o.lbas_per_io = 17; }), "--lbas-per-io");
  expect_refused(with([](auto& o) { o.base_lba = 131072; }), "--base-lba");
  expect_refused(with([](auto& o) { o.base_lba = ~u64{0}; }), "--base-lba");
  expect_refused(with([](auto& o) { o.base_lba = 131071, o.num_queues = 2; }), "--num-queues");
  expect_refused(with([](auto& o) { o.base_lba = 131071, o.lbas_per_io = 2; }), "--num-queues");
  expect_refused(with([](auto& o) { o.controller = "model:queues=2", o.num_queues = 4; }), "--num-queues");
  expect_refused(with([](auto& o) { o.memory_mode = 1; }), "--memory-mode");
  BenchOptions o = usual();
  o.controller = "model:shadow=off";
  o.shadow_doorbells = true;
  EXPECT_THROW((void)run_bench(o, {}), Error);
  o = usual();
  o.nsid = 2;
  EXPECT_THROW((void)run_bench(o, {}), Error);
}

TEST(Bench, TheEdgesOfWhatCanBe) {
  BenchOptions o = usual();
  o.controller = "model:capacity=64Mi,queues=3,entries=4,mdts=1";
  o.num_queues = 3;
  o.queue_length = 4;
  o.batch = 3;
  o.lbas_per_io = 16;
  run_clean(o);
  o = usual();
  o.base_lba = 131071;  // the last block
  run_clean(o);
}

// --- Ctrl-C ---------------------------------------------------------------------------------------

TEST(Bench, StopLeavesAValidPartialResult) {
  for (const bool infinite : {true, false}) {
    BenchOptions o = usual();
    o.infinite = infinite;
    o.duration_s = infinite ? 0 : 3600;
    o.write_io = 1000;
    o.read_io = 1000;
    o.num_queues = 2;
    o.batch = 4;
    measure::StopFlag stop;
    int calls = 0;
    const BenchResult r = run_bench(o, {.stop = &stop, .progress = [&](double, const std::string&) {
                                          if (++calls == 20) (void)stop.request(SIGINT);
                                        }});
    EXPECT_EQ(r.stop_reason, StopReason::requested);
    EXPECT_FALSE(r.failed) << "a stop is not an error";
    EXPECT_EQ(r.cell().errors.at("timeout"), 0u);
    EXPECT_EQ(r.cell().errors.at("identity"), 0u);
    EXPECT_EQ(r.cell().verify.failed(), 0u);
    EXPECT_GT(r.cell().metrics.ops, 0u);
  }
}

// The figures that displays see while initiators work, one of them long after the other has ended its queue.
TEST(Bench, LiveFiguresGrowToThoseOfTheResult) {
  BenchOptions o = usual();
  o.write_io = 3001;  // one queue has one I/O more
  o.read_io = 40'000;
  o.num_queues = 2;
  o.threads = 2;
  o.batch = 8;
  o.faults.probability[static_cast<u32>(model::Fault::corrupt)] = 0.01;
  o.faults.probability[static_cast<u32>(model::Fault::error)] = 0.01;
  measure::LiveBoard live(true);
  measure::LiveFigures last;
  const BenchResult r = run_bench(o, {.stop = nullptr,
                                      .progress =
                                          [&](double, const std::string&) {
                                            const measure::LiveFigures now = live.figures();
                                            EXPECT_GE(now.operations, last.operations);
                                            EXPECT_EQ(now.bytes, now.operations * 512);
                                            EXPECT_GE(now.counters.checked, last.counters.checked);
                                            EXPECT_GE(now.counters.unverifiable, last.counters.unverifiable);
                                            EXPECT_GE(now.counters.corrupt, last.counters.corrupt);
                                            EXPECT_GE(now.counters.failed, last.counters.failed);
                                            EXPECT_GE(now.latency.count(), last.latency.count());
                                            EXPECT_EQ(now.latency.count(), now.counters.timed)
                                                << "of one moment";
                                            last = now;
                                          },
                                      .live = &live});
  const measure::LiveFigures end = live.figures();
  const report::Cell& cell = r.cell();
  EXPECT_EQ(end.operations, o.write_io + o.read_io);
  EXPECT_EQ(end.counters.failed, cell.errors.at("completion"));
  EXPECT_EQ(end.counters.checked, cell.verify.checked);
  EXPECT_EQ(end.counters.corrupt, cell.verify.corrupt);
  EXPECT_GT(end.counters.failed, 0u);
  EXPECT_GT(end.counters.corrupt, 0u);
  EXPECT_EQ(end.latency.count(), cell.metrics.latency_ns.count);
}

/// A second request ends the wait for commands that are never answered, long before their deadline.
TEST(Bench, ASecondStopGivesUpWhatIsInFlight) {
  BenchOptions o = usual();
  o.faults.probability[static_cast<u32>(model::Fault::drop)] = 1;
  o.timeout_s = 3600;
  o.late_after_s = 0;
  o.read_io = 1000;
  measure::StopFlag stop;
  u64 now_ns = 0;
  const BenchResult r =
      run_bench(o, {.stop = &stop, .progress = [&](double, const std::string&) {
                      if (!stop.gave_up())
                        (void)stop.request(SIGINT, now_ns += 2 * measure::StopFlag::kNextRequestNs);
                    }});
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_TRUE(r.failed) << "what was in flight may be lost";
  EXPECT_EQ(r.cell().errors.at("timeout"), 0u);
  EXPECT_GT(r.cell().errors.at("aborted"), 0u);
  EXPECT_EQ(r.cell().errors.at("identity"), 0u);
  ASSERT_FALSE(r.warnings.empty());
  EXPECT_NE(r.warnings.back().find("second request to stop"), std::string::npos) << r.warnings.back();
}

TEST(Bench, StopBeforeItBegan) {
  BenchOptions o = usual();
  o.infinite = true;
  o.warmup_s = 5;
  measure::StopFlag stop;
  (void)stop.request(SIGINT);
  const BenchResult r = run_bench(o, {.stop = &stop, .progress = {}});
  EXPECT_EQ(r.stop_reason, StopReason::requested);
  EXPECT_FALSE(r.failed);
}

}  // namespace
}  // namespace doorbell::nvme
