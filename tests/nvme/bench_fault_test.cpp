// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell nvme` with a model that injects every kind of fault: each is found, counted under its kind, and
// limited.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "bench_rig.hpp"
#include "eventually.hpp"
#include "nvme/in_turns.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

using model::Fault;
using namespace bench_rig;

struct FaultRun {
  Fault fault;
  double p;
  u64 seed;
  u32 queues;
  u32 queue_length = 256;
  u32 batch = 4;
  u32 check_threads = 0;
  bool kernel = false;  ///< the code of a device's kernel serves the queues
};

BenchOptions fault_options(const FaultRun& f) {
  BenchOptions o = usual();
  o.write_io = o.read_io = 2000;
  o.num_queues = f.queues;
  o.queue_length = f.queue_length;
  o.batch = f.batch;
  o.seed = o.lfsr_seed = f.seed;
  o.faults = only(f.fault, f.p);
  o.check_threads = f.check_threads;
  if (f.kernel) o.controller += ",engine=kernel-on-cpu";
  return o;
}

class Faults : public testing::TestWithParam<FaultRun> {};

TEST_P(Faults, AreCountedExactly) {
  const FaultRun& f = GetParam();
  const BenchResult r = run_bench(fault_options(f), {});
  const u64 n = injected(r, f.fault);
  EXPECT_GT(n, 0u) << "the run proves nothing";
  const report::Verify& v = r.cell().verify;
  const auto only = [&](Fault which) { return f.fault == which ? n : 0; };
  EXPECT_EQ(r.failed, f.fault != Fault::reorder);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  EXPECT_EQ(v.corrupt, only(Fault::corrupt));
  EXPECT_EQ(v.misplaced, only(Fault::misplace));
  EXPECT_EQ(v.stale, only(Fault::stale));
  EXPECT_EQ(v.duplicated, only(Fault::duplicate));
  EXPECT_EQ(v.missing, 0u);
  EXPECT_EQ(errors(r, "completion"), only(Fault::error));
  for (const char* other : {"timeout", "late", "aborted", "removal", "protocol", "identity"})
    EXPECT_EQ(errors(r, other), 0u) << other;
  if (f.fault != Fault::error) {
    EXPECT_EQ(v.checked, 2000u);
    EXPECT_EQ(v.unverifiable, 0u);
    EXPECT_EQ(r.cell().metrics.ops, 4000u);
  } else {
    EXPECT_EQ(r.cell().metrics.ops, 4000u - n);
    u64 statuses = 0;
    for (const auto& [text, count] : r.cell().extra.at("nvme").at("completion_statuses").items())
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
    all.push_back({f, 0.1, 8, 2, 256, 16, 3});
    all.push_back({.fault = f, .p = 0.1, .seed = 9, .queues = 2, .batch = 16, .kernel = true});
    all.push_back(
        {.fault = f, .p = 0.3, .seed = 6, .queues = 2, .queue_length = 2, .batch = 1, .kernel = true});
  }
  // Every read corrupt, every completion double, every one late by its neighbours.
  for (const Fault f : {Fault::corrupt, Fault::duplicate, Fault::reorder}) all.push_back({f, 1, 3, 2, 64, 8});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Faults, testing::ValuesIn(fault_runs()), [](const auto& p) {
  const FaultRun& f = p.param;
  return std::string(name(f.fault)) + "_" + std::to_string(p.index) + "_q" + std::to_string(f.queues) + "_l" +
         std::to_string(f.queue_length) +
         (f.check_threads > 0 ? "_c" + std::to_string(f.check_threads) : "") + (f.kernel ? "_kernel" : "");
});

TEST(Bench, SeveralFaultsKeepTheirClasses) {
  BenchOptions o = fault_options({Fault::corrupt, 0.02, 9, 3});
  for (const Fault f : {Fault::misplace, Fault::duplicate, Fault::reorder})
    o.faults.probability[static_cast<u32>(f)] = 0.02;
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.cell().verify.corrupt, injected(r, Fault::corrupt));
  EXPECT_EQ(r.cell().verify.misplaced, injected(r, Fault::misplace));
  EXPECT_EQ(r.cell().verify.duplicated, injected(r, Fault::duplicate));
  EXPECT_GT(injected(r, Fault::reorder), 0u);
  EXPECT_EQ(r.cell().verify.checked, 2000u);
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
    EXPECT_EQ(r.cell().verify.failed(), injected(r, f));
    EXPECT_GT(injected(r, f), 0u);
    EXPECT_EQ(r.cell().verify.checked, 400u);
  }
}

TEST(Bench, DroppedCompletionsEndByTheDeadline) {
  for (const u32 queues : {1u, 3u}) {
    BenchOptions o = fault_options({Fault::drop, 0.003, 3, queues});
    BenchResult r;
    double elapsed_s = 0;
    test::with_longer_times([&](double scale) {
      o.timeout_s = 0.25 * scale;
      o.late_after_s = 0.95 * o.timeout_s;
      const u64 begin = wall_ns();
      r = run_bench(o, {});
      elapsed_s = static_cast<double>(wall_ns() - begin) * 1e-9;
      return errors(r, "timeout") == injected(r, Fault::drop) && errors(r, "late") == 0;
    });
    EXPECT_LT(elapsed_s, 15 * std::max(o.timeout_s, 2.0)) << "it hangs";
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::timeout);
    EXPECT_GT(injected(r, Fault::drop), 0u);
    EXPECT_EQ(errors(r, "timeout"), injected(r, Fault::drop));
    EXPECT_EQ(errors(r, "identity"), 0u);
    EXPECT_EQ(errors(r, "late"), 0u);
  }
}

TEST(Bench, DelayedCompletionsAreLateNotLost) {
  BenchOptions o = fault_options({Fault::delay, 0.002, 3, 2});
  BenchResult r;
  test::with_longer_times([&](double scale) {
    o.late_after_s = 0.2 * scale;
    r = run_bench(o, {});
    return errors(r, "late") == injected(r, Fault::delay);
  });
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::delay), 0u);
  EXPECT_EQ(errors(r, "late"), injected(r, Fault::delay));
  EXPECT_EQ(errors(r, "timeout"), 0u);
  EXPECT_EQ(r.cell().verify.checked, 2000u);
}

/// Given up on, then completed after all: late, not lost, and not there twice.
TEST(Bench, CompletionsAfterTheDeadline) {
  BenchOptions o = fault_options({Fault::delay, 0.002, 3, 1});
  const std::string controller = o.controller;
  const measure::RunWatch no_watch;
  BenchResult r;
  test::with_longer_times([&](double scale) {
    const auto delay = static_cast<u32>(scale);
    o.controller = controller + ",delay=" + std::to_string(delay);
    o.timeout_s = 0.5 * delay;
    o.late_after_s = 0.45 * delay;
    const auto bench = bench_contender(o, no_watch, "", true);
    bench->repeat(0);
    // Its phases are over. By now no command waits longer than the delay; then the queues are deleted.
    const u64 due = wall_ns() + u64{delay} * 1'000'000'000;
    while (wall_ns() < due) std::this_thread::sleep_for(std::chrono::nanoseconds(due - wall_ns()));
    r = bench->finish();
    return errors(r, "timeout") == 0;
  });
  EXPECT_TRUE(r.failed);
  EXPECT_GT(injected(r, Fault::delay), 0u);
  EXPECT_EQ(errors(r, "timeout"), 0u) << "all were answered";
  // A machine that pauses for a second makes others late too.
  EXPECT_GE(errors(r, "late"), injected(r, Fault::delay));
  EXPECT_EQ(errors(r, "completion"), 0u);
  EXPECT_EQ(errors(r, "identity"), 0u);
  EXPECT_EQ(r.cell().verify.duplicated, 0u);
}

/// A command that only the deletion of its queue ends is lost: that is no answer, late or otherwise.
TEST(Bench, CommandsThatOnlyTheDeletionEnds) {
  BenchOptions o = fault_options({Fault::delay, 0.002, 3, 1});
  o.controller += ",delay=3600";
  BenchResult r;
  test::with_longer_times([&](double scale) {
    o.timeout_s = 0.25 * scale;
    o.late_after_s = 0.9 * o.timeout_s;
    r = run_bench(o, {});
    return errors(r, "timeout") == injected(r, Fault::delay);
  });
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::timeout);
  EXPECT_GT(injected(r, Fault::delay), 0u);
  EXPECT_EQ(errors(r, "timeout"), injected(r, Fault::delay));
  EXPECT_EQ(errors(r, "completion"), 0u);
  EXPECT_EQ(errors(r, "identity"), 0u);
  EXPECT_EQ(r.cell().verify.duplicated, 0u);
}

TEST(Bench, ARemovedDeviceEndsTheRun) {
  for (const u32 queues : {1u, 4u}) {
    BenchOptions o = fault_options({Fault::removal, 0.005, 8, queues});
    const u64 begin = wall_ns();
    const BenchResult r = run_bench(o, {});
    EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 20) << "it waited for a device that is gone";
    EXPECT_TRUE(r.failed);
    EXPECT_EQ(r.stop_reason, StopReason::removed);
    EXPECT_EQ(errors(r, "removal"), 1u);
    EXPECT_GE(injected(r, Fault::removal), 1u);
    EXPECT_EQ(errors(r, "identity"), 0u);
    EXPECT_EQ(errors(r, "timeout"), 0u);
  }
}

/// The host takes its memory away from a device that is gone: shadow doorbells, queues, buffers.
TEST(Bench, ARemovedDeviceTouchesNothingAnyMore) {
  for (const bool shadow : {false, true})
    for (u64 seed = 1; seed <= 5; ++seed) {
      BenchOptions o =
          fault_options({.fault = Fault::removal, .p = 0.005, .seed = seed, .queues = 2, .kernel = true});
      o.shadow_doorbells = shadow;
      const BenchResult r = run_bench(o, {});
      EXPECT_EQ(r.stop_reason, StopReason::removed);
      EXPECT_EQ(errors(r, "removal"), 1u);
    }
}

TEST(Bench, RemovalAtTheVeryFirstCommand) {
  BenchOptions o = fault_options({Fault::removal, 1, 1, 2});
  const BenchResult r = run_bench(o, {});
  EXPECT_EQ(r.stop_reason, StopReason::removed);
  EXPECT_EQ(r.cell().metrics.ops, 0u);
}

}  // namespace
}  // namespace doorbell::nvme
