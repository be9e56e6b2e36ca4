// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What `doorbell nvme` measures, end to end against the model: shapes, queues, media, faults, stops.

#include "nvme/bench.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include "measure/clock.hpp"

namespace doorbell::nvme {
namespace {

using model::Fault;

/// A busy machine may keep a thread from running for a second; nothing here shall call that late.
BenchOptions usual() {
  BenchOptions o;
  o.controller = "model:capacity=64Mi";
  o.write_io = 400;
  o.read_io = 400;
  o.timeout_s = 60;
  o.late_after_s = 50;
  return o;
}

u64 injected(const BenchResult& r, Fault f) {
  return r.cell.extra.at("model").at("injected").at(std::string(name(f))).get<u64>();
}

void expect_clean(const BenchResult& r, u64 checked) {
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, "done");
  for (const auto& [kind, n] : r.cell.errors) EXPECT_EQ(n, 0u) << kind;
  const report::Verify& v = r.cell.verify;
  EXPECT_EQ(v.checked, checked);
  EXPECT_EQ(v.unverifiable, 0u);
  EXPECT_EQ(v.failed(), 0u);
  EXPECT_EQ(r.cell.extra.at("model").at("dma_faults"), 0u);
  EXPECT_EQ(r.cell.extra.at("model").at("invalid_doorbell_values"), 0u);
  EXPECT_EQ(r.cell.extra.at("model").at("unknown_doorbells"), 0u);
  EXPECT_EQ(r.cell.extra.at("model").at("error_completions"), 0u);
}

void run_clean(const BenchOptions& o) {
  SCOPED_TRACE(testing::Message() << o.controller << " lbas " << o.lbas_per_io << " queues " << o.num_queues
                                  << " length " << o.queue_length << " batch " << o.batch
                                  << (o.random ? " random" : "") << (o.shadow_doorbells ? " shadow" : ""));
  const BenchResult r = run_bench(o, {});
  expect_clean(r, o.read_io);
  EXPECT_EQ(r.cell.metrics.ops, o.write_io + o.read_io);
  EXPECT_EQ(r.cell.metrics.latency_ns.count, o.write_io + o.read_io);
}

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
  EXPECT_EQ(r.cell.repeats.size(), 3u);
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
  EXPECT_GE(r.cell.metrics.latency_ns.min, 2e6 * 0.98);  // the clock's calibration
  o.controller = "model:capacity=64Mi,bandwidth=100M";
  o.lbas_per_io = 128;
  o.batch = 8;
  o.write_io = o.read_io = 100;  // 13 MB
  r = run_bench(o, {});
  expect_clean(r, 100);
  EXPECT_LE(r.cell.metrics.bytes_per_s, 102e6);
}

TEST(Bench, NullMediaVerifiesNothingAndSaysSo) {
  BenchOptions o = usual();
  o.controller = "model:media=null";
  o.write_io = 0;
  o.read_io = 5000;
  o.batch = 16;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell.verify.checked, 0u);
  EXPECT_EQ(r.cell.verify.mode, "none");
  ASSERT_EQ(r.warnings.size() >= 1, true);
}

TEST(Bench, ReadsOfBlocksThatNobodyWrote) {
  BenchOptions o = usual();
  o.write_io = 0;
  o.read_io = 300;
  BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell.verify.unverifiable, 300u);
  o.write_io = 100;
  r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell.verify.checked, 100u);
  EXPECT_EQ(r.cell.verify.unverifiable, 200u);
}

TEST(Bench, SampledVerification) {
  BenchOptions o = usual();
  o.write_io = o.read_io = 4000;
  o.batch = 16;
  o.verify_sample = 0.25;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_NEAR(static_cast<double>(r.cell.verify.checked), 1000, 200);
  EXPECT_EQ(r.cell.verify.mode, "sample=0.25");
}

TEST(Bench, TimingVariants) {
  BenchOptions o = usual();
  o.less_timing = true;
  BenchResult r = run_bench(o, {});
  expect_clean(r, 400);
  EXPECT_EQ(r.cell.metrics.latency_ns.count, 0u);
  EXPECT_EQ(r.cell.metrics.ops, 800u);
  EXPECT_GT(r.cell.metrics.elapsed_s, 0);
  o.less_timing = false;
  o.substeps = true;
  r = run_bench(o, {});
  expect_clean(r, 400);
  EXPECT_TRUE(r.cell.substeps_ns.build && r.cell.substeps_ns.enqueue && r.cell.substeps_ns.sq_doorbell &&
              r.cell.substeps_ns.cq_poll && r.cell.substeps_ns.cq_doorbell && r.cell.substeps_ns.total);
  o.substeps = false;
  o.write_io = 0;
  o.read_io = 1;
  o.duration_s = 0.05;
  o.warmup_s = 0.02;
  o.repeats = 2;
  r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell.repeats.size(), 2u);
  EXPECT_GE(r.cell.metrics.elapsed_s, 0.04);
}

TEST(Bench, CountsAddUp) {
  BenchOptions o = usual();
  o.num_queues = 3;
  o.batch = 4;
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell.extra.at("model").at("reads"), 400u);
  EXPECT_EQ(r.cell.extra.at("model").at("writes"), 400u);
  EXPECT_EQ(r.cell.extra.at("nvme").at("submitted"), 800u);
  EXPECT_EQ(r.cell.metrics.bytes, 800u * 512);
  EXPECT_EQ(r.cell.verify.checked_bytes, 400u * 512);
  EXPECT_EQ(r.cell.device_kind, "model");
  EXPECT_EQ(r.cell.initiator_kind, "cpu");
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
  expect_refused(with([](auto& o) { o.memory_mode = 8; }), "--memory-mode");
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

// --- a file that outlives the controller ------------------------------------------------------------

class MediaFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-media-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/media";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  BenchOptions options(u64 writes, u64 reads) const {
    BenchOptions o = usual();
    o.controller = "model:capacity=8Mi,media=file:" + path_;
    o.write_io = writes;
    o.read_io = reads;
    o.num_queues = 2;
    o.batch = 4;
    return o;
  }
  [[nodiscard]] std::string contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string folder_, path_;
};

TEST_F(MediaFile, SurvivesARestart) {
  BenchOptions o = options(600, 0);
  EXPECT_FALSE(run_bench(o, {}).failed);
  o = options(0, 600);
  o.seed = o.lfsr_seed = 99;  // what was written says who it is: the reader needs no seed
  expect_clean(run_bench(o, {}), 600);
  o.read_io = 0;
  o.write_io = 600;
  EXPECT_FALSE(run_bench(o, {}).failed);
  o.write_io = 0;
  o.read_io = 600;
  o.num_queues = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.cell.verify.checked, 600u);
}

TEST_F(MediaFile, DamageBetweenRunsIsFound) {
  EXPECT_FALSE(run_bench(options(100, 0), {}).failed);
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(7 * 512 + 100);
    file.put('!');
    std::string unit(512, '\0');  // block 3 holds what belongs to block 9
    file.seekg(9 * 512);
    file.read(unit.data(), 512);
    file.seekp(3 * 512);
    file.write(unit.data(), 512);
  }
  BenchOptions o = options(0, 100);
  o.num_queues = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell.verify.corrupt, 1u);
  EXPECT_EQ(r.cell.verify.misplaced, 1u);
  EXPECT_EQ(r.cell.verify.checked, 100u);
}

TEST_F(MediaFile, IsUntouchedByARefusedRun) {
  {
    std::string bytes(8u << 20, '\0');
    for (u32 i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  const std::string before = contents();
  const auto refused = [&](auto change) {
    BenchOptions o = options(100, 100);
    change(o);
    EXPECT_THROW((void)run_bench(o, {}), Error);
    EXPECT_TRUE(contents() == before) << "a refused run changed the file";
  };
  refused([](auto& o) { o.queue_length = 5000; });
  refused([](auto& o) { o.lbas_per_io = 60000; });
  refused([](auto& o) { o.base_lba = 1u << 20; });
  refused([](auto& o) { o.controller += ",queues=1"; });
  refused([](auto& o) { o.nsid = 7; });
  refused([](auto& o) { o.controller += ",lba=1000"; });
}

TEST_F(MediaFile, ALargerFileKeepsWhatLiesBehind) {
  {
    std::ofstream file(path_, std::ios::binary);
    file << std::string(8u << 20, 'a') << "the tail";
  }
  BenchOptions o = options(16384, 100);
  EXPECT_THROW((void)run_bench(o, {}), Error);  // somebody else's blocks
  EXPECT_EQ(contents().substr(0, 8u << 20), std::string(8u << 20, 'a'));
  o.allow_write = true;
  EXPECT_FALSE(run_bench(o, {}).failed);
  EXPECT_EQ(contents().substr(8u << 20), "the tail");
}

TEST(Bench, AMediaFileThatCannotBe) {
  BenchOptions o = usual();
  o.controller = "model:media=file:/dev/null";
  EXPECT_THROW((void)run_bench(o, {}), Error);
  o.controller = "model:media=file:/nonexistent/folder/file";
  EXPECT_THROW((void)run_bench(o, {}), Error);
  o.controller = "model:media=file:/tmp";
  EXPECT_THROW((void)run_bench(o, {}), Error);
}

// --- faults ---------------------------------------------------------------------------------------

struct FaultRun {
  Fault fault;
  double p;
  u64 seed;
  u32 queues;
  u32 queue_length = 256;
  u32 batch = 4;
};

BenchOptions fault_options(const FaultRun& f) {
  BenchOptions o = usual();
  o.write_io = o.read_io = 2000;
  o.num_queues = f.queues;
  o.queue_length = f.queue_length;
  o.batch = f.batch;
  o.seed = o.lfsr_seed = f.seed;
  o.faults.probability[static_cast<u32>(f.fault)] = f.p;
  return o;
}

class Faults : public testing::TestWithParam<FaultRun> {};

TEST_P(Faults, AreCountedExactly) {
  const FaultRun& f = GetParam();
  const BenchResult r = run_bench(fault_options(f), {});
  const u64 n = injected(r, f.fault);
  EXPECT_GT(n, 0u) << "the run proves nothing";
  const report::Verify& v = r.cell.verify;
  const auto only = [&](Fault which) { return f.fault == which ? n : 0; };
  EXPECT_EQ(r.failed, f.fault != Fault::reorder);
  EXPECT_EQ(r.stop_reason, "done");
  EXPECT_EQ(v.corrupt, only(Fault::corrupt));
  EXPECT_EQ(v.misplaced, only(Fault::misplace));
  EXPECT_EQ(v.stale, only(Fault::stale));
  EXPECT_EQ(v.duplicated, only(Fault::duplicate));
  EXPECT_EQ(v.missing, 0u);
  EXPECT_EQ(r.cell.errors.at("completion"), only(Fault::error));
  for (const char* other : {"timeout", "late", "aborted", "removal", "protocol", "identity"})
    EXPECT_EQ(r.cell.errors.at(other), 0u) << other;
  if (f.fault != Fault::error) {
    EXPECT_EQ(v.checked, 2000u);
    EXPECT_EQ(v.unverifiable, 0u);
    EXPECT_EQ(r.cell.metrics.ops, 4000u);
  } else {
    EXPECT_EQ(r.cell.metrics.ops, 4000u - n);
    u64 statuses = 0;
    for (const auto& [text, count] : r.cell.extra.at("nvme").at("completion_statuses").items())
      statuses += count.get<u64>();
    EXPECT_EQ(statuses, n);
  }
}

std::vector<FaultRun> fault_runs() {
  std::vector<FaultRun> all;
  for (const Fault f :
       {Fault::error, Fault::corrupt, Fault::misplace, Fault::stale, Fault::duplicate, Fault::reorder}) {
    for (const u64 seed : {1u, 2u, 77u})
      for (const u32 queues : {1u, 4u}) all.push_back({f, 0.01, seed, queues});
    all.push_back({f, 0.2, 5, 2, 8, 3});
    all.push_back({f, 0.3, 6, 2, 2, 1});
    all.push_back({f, 0.3, 7, 1, 3, 2});
  }
  // Every read corrupt, every completion double, every one late by its neighbours.
  for (const Fault f : {Fault::corrupt, Fault::duplicate, Fault::reorder}) all.push_back({f, 1, 3, 2, 64, 8});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults, testing::ValuesIn(fault_runs()), [](const auto& p) {
  const FaultRun& f = p.param;
  return std::string(name(f.fault)) + "_" + std::to_string(p.index) + "_q" + std::to_string(f.queues) + "_l" +
         std::to_string(f.queue_length);
});

TEST(Bench, SeveralFaultsKeepTheirClasses) {
  BenchOptions o = fault_options({Fault::corrupt, 0.02, 9, 3});
  for (const Fault f : {Fault::misplace, Fault::duplicate, Fault::reorder})
    o.faults.probability[static_cast<u32>(f)] = 0.02;
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell.verify.corrupt, injected(r, Fault::corrupt));
  EXPECT_EQ(r.cell.verify.misplaced, injected(r, Fault::misplace));
  EXPECT_EQ(r.cell.verify.duplicated, injected(r, Fault::duplicate));
  EXPECT_GT(injected(r, Fault::reorder), 0u);
  EXPECT_EQ(r.cell.verify.checked, 2000u);
}

TEST(Bench, FaultsAreTheSameForTheSameSeed) {
  const auto count = [](u64 seed) {
    return injected(run_bench(fault_options({Fault::corrupt, 0.05, seed, 2}), {}), Fault::corrupt);
  };
  EXPECT_EQ(count(5), count(5));
  EXPECT_NE(count(5), count(6));
}

TEST(Bench, FaultsInIosOfManyBlocks) {
  for (const Fault f : {Fault::corrupt, Fault::misplace, Fault::stale}) {
    SCOPED_TRACE(name(f));
    BenchOptions o = fault_options({f, 0.05, 4, 2});
    o.lbas_per_io = 24;
    o.write_io = o.read_io = 400;
    const BenchResult r = run_bench(o, {});
    EXPECT_EQ(r.cell.verify.failed(), injected(r, f));
    EXPECT_GT(injected(r, f), 0u);
    EXPECT_EQ(r.cell.verify.checked, 400u);
  }
}

TEST(Bench, DroppedCompletionsEndByTheDeadline) {
  for (const u32 queues : {1u, 3u}) {
    BenchOptions o = fault_options({Fault::drop, 0.003, 3, queues});
    o.timeout_s = 2;
    o.late_after_s = 1.9;
    const u64 begin = wall_ns();
    const BenchResult r = run_bench(o, {});
    EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 30) << "it hangs";
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, "timeout");
    EXPECT_GT(injected(r, Fault::drop), 0u);
    EXPECT_EQ(r.cell.errors.at("timeout"), injected(r, Fault::drop));
    EXPECT_EQ(r.cell.errors.at("identity"), 0u);
    EXPECT_EQ(r.cell.errors.at("late"), 0u);
  }
}

TEST(Bench, DelayedCompletionsAreLateNotLost) {
  BenchOptions o = fault_options({Fault::delay, 0.002, 3, 2});
  o.late_after_s = 1;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::delay), 0u);
  EXPECT_EQ(r.cell.errors.at("late"), injected(r, Fault::delay));
  EXPECT_EQ(r.cell.errors.at("timeout"), 0u);
  EXPECT_EQ(r.cell.verify.checked, 2000u);
}

/// Given up on, then completed after all: late, not lost, and not there twice.
TEST(Bench, CompletionsAfterTheDeadline) {
  BenchOptions o = fault_options({Fault::delay, 0.002, 3, 1});
  o.controller += ",delay=3";
  o.timeout_s = 1.5;
  o.late_after_s = 1.4;
  const BenchResult r = run_bench(o, {});
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, "timeout");
  // The deletion of the queue ends them; whichever way each went, it is counted once.
  EXPECT_EQ(r.cell.errors.at("timeout") + r.cell.errors.at("late"), injected(r, Fault::delay));
  EXPECT_EQ(r.cell.errors.at("identity"), 0u);
  EXPECT_EQ(r.cell.verify.duplicated, 0u);
}

TEST(Bench, ARemovedDeviceEndsTheRun) {
  for (const u32 queues : {1u, 4u}) {
    BenchOptions o = fault_options({Fault::removal, 0.005, 8, queues});
    const u64 begin = wall_ns();
    const BenchResult r = run_bench(o, {});
    EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 20) << "it waited for a device that is gone";
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, "removed");
    EXPECT_EQ(r.cell.errors.at("removal"), 1u);
    EXPECT_GE(injected(r, Fault::removal), 1u);
    EXPECT_EQ(r.cell.errors.at("identity"), 0u);
    EXPECT_EQ(r.cell.errors.at("timeout"), 0u);
  }
}

TEST(Bench, RemovalAtTheVeryFirstCommand) {
  BenchOptions o = fault_options({Fault::removal, 1, 1, 2});
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.stop_reason, "removed");
  EXPECT_EQ(r.cell.metrics.ops, 0u);
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
    EXPECT_EQ(r.stop_reason, "signal");
    EXPECT_FALSE(r.failed) << "a stop is not an error";
    EXPECT_EQ(r.cell.errors.at("timeout"), 0u);
    EXPECT_EQ(r.cell.errors.at("identity"), 0u);
    EXPECT_EQ(r.cell.verify.failed(), 0u);
    EXPECT_GT(r.cell.metrics.ops, 0u);
  }
}

TEST(Bench, StopBeforeItBegan) {
  BenchOptions o = usual();
  o.infinite = true;
  o.warmup_s = 5;
  measure::StopFlag stop;
  (void)stop.request(SIGINT);
  const BenchResult r = run_bench(o, {.stop = &stop, .progress = {}});
  EXPECT_EQ(r.stop_reason, "signal");
  EXPECT_FALSE(r.failed);
}

}  // namespace
}  // namespace doorbell::nvme
