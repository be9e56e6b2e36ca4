// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts that all benches share, with a runner that returns what the test wants: the reasons that end a
// run, what a drain and a warm-up count, and the limits that a phase gets.

#include "measure/bench_run.hpp"

#include <gtest/gtest.h>

#include <csignal>

namespace doorbell::measure {
namespace {

struct Phase : PhaseLimits {
  bool drain = false;
  [[nodiscard]] StopReason lost() const { return StopReason::done; }
};
struct Queue {
  u64 count = 1;
};

/// Each queue's outcome is given; what the phase was asked is kept.
class ScriptedRunner final : public Runner<Phase, Queue> {
 public:
  PhaseOutcome run(Phase phase, std::span<const Queue> items, bool, const Watch& watch) override {
    asked = phase;
    counts.clear();
    for (const Queue& q : items) counts.push_back(q.count);
    if (watch) told_to_stop = watch(1) != Asked::nothing;
    PhaseOutcome out;
    const std::vector<u64> bins(histogram::kBuckets);
    for (const OpStats& s : queues) out.add(s, bins);
    return out;
  }
  [[nodiscard]] u64 ticks(double seconds) const override { return static_cast<u64>(seconds * 1e9); }
  [[nodiscard]] double ns_per_tick() const override { return 1; }

  std::vector<OpStats> queues;
  Phase asked;
  std::vector<u64> counts;
  bool told_to_stop = false;
};

class BenchRunTest : public testing::Test {
 public:
  static OpStats queue(StopReason stop, u64 succeeded = 1) {
    OpStats s;
    s.stop = stop;
    s.posted = s.succeeded = succeeded;
    s.end_ns = 1000;
    return s;
  }
  PhaseOutcome phase(BenchRun& run, const PhaseGoal& goal = {}, const std::function<bool()>& leaving = {}) {
    return run.phase(runner_, Phase{}, std::span<const Queue>(items_), false, goal, leaving);
  }
  RepeatTally repeat(BenchRun& run) {
    RepeatTally t;
    t.part("read").add(phase(run), 512);
    return t;
  }
  BenchResult result(BenchRun& run) {
    run.finish(1, false, [](u16) { return std::string("a status"); });
    BenchResult r;
    run.deliver(r, "title: ");
    return r;
  }

  StopFlag flag_;
  RunWatch watch_{.stop = &flag_, .progress = {}};
  RunOptions options_;
  ScriptedRunner runner_;
  std::vector<Queue> items_{{5}, {7}};
};

TEST_F(BenchRunTest, OnlyWhatADeviceDidEndsARun) {
  struct Case {
    StopReason one, other, stop;
    bool going, lost;
  };
  using enum StopReason;
  for (const Case& c : {Case{done, done, done, true, false},
                        {duration, done, done, true, false},
                        {requested, duration, done, true, false},
                        {duration, broken, broken, false, false},
                        {timeout, requested, timeout, false, false},
                        {timeout, broken, timeout, false, false},
                        {reset, timeout, reset, false, true},
                        {reset, removed, removed, false, true}}) {
    SCOPED_TRACE(static_cast<u32>(c.one) * 10 + static_cast<u32>(c.other));
    BenchRun run(options_, watch_, "path", 512);
    runner_.queues = {queue(c.one), queue(c.other)};
    (void)phase(run);
    EXPECT_EQ(run.stop(), c.stop);
    EXPECT_EQ(run.going(), c.going);
    EXPECT_EQ(run.lost(), c.lost);
    EXPECT_EQ(run.stop_reason(), c.stop);
    // A later phase that ends well makes none of it undone.
    runner_.queues = {queue(done), queue(duration)};
    (void)phase(run);
    EXPECT_EQ(run.stop(), c.stop);
  }
}

TEST_F(BenchRunTest, WhatIsMendedGoesOn) {
  BenchRun run(options_, watch_, "path", 512, true);
  runner_.queues = {queue(StopReason::broken)};
  (void)phase(run);
  EXPECT_TRUE(run.going());
  EXPECT_EQ(run.stop(), StopReason::broken) << "somebody has to mend it";
  run.recovered();
  EXPECT_EQ(run.stop(), StopReason::done);
  runner_.queues = {queue(StopReason::timeout)};
  (void)phase(run);
  EXPECT_FALSE(run.going());
}

TEST_F(BenchRunTest, ASignalEndsARunAndIsToldWhereNothingWorseHappened) {
  BenchRun run(options_, watch_, "path", 512);
  runner_.queues = {queue(StopReason::requested)};
  (void)phase(run);
  EXPECT_FALSE(runner_.told_to_stop);
  flag_.request(SIGINT);
  (void)phase(run);
  EXPECT_TRUE(runner_.told_to_stop);
  EXPECT_FALSE(run.going());
  EXPECT_EQ(run.stop_reason(), StopReason::requested);
  run.stopped(StopReason::timeout);
  EXPECT_EQ(run.stop_reason(), StopReason::timeout);
}

TEST(BenchResult, OfItsPartsTheWorstReasonIsTold) {
  using enum StopReason;
  const auto part = [](StopReason why, const char* path, u64 timeouts, ExitCode code) {
    BenchResult r;
    r.stopped(why);
    r.code = code;
    r.warnings = {std::string(path) + " warns"};
    report::Cell cell;
    cell.path = path;
    cell.errors = {{"completion", 0}, {"timeout", timeouts}};
    r.add(std::move(cell));
    return r;
  };
  BenchResult all;
  all.append(part(done, "a", 0, ExitCode::ok));
  EXPECT_EQ(all.stop_reason, done);
  EXPECT_EQ(all.exit_code(), 0);
  all.append(part(requested, "b", 0, ExitCode::absent));
  EXPECT_EQ(all.stop_reason, requested);
  EXPECT_EQ(all.exit_code(), static_cast<int>(ExitCode::absent));
  all.append(part(timeout, "c", 1, ExitCode::usage));
  EXPECT_EQ(all.stop_reason, timeout);
  EXPECT_TRUE(all.failed);
  EXPECT_EQ(all.code, ExitCode::absent) << "the first error's";
  EXPECT_EQ(all.exit_code(), static_cast<int>(ExitCode::data));
  all.append(part(broken, "d", 0, ExitCode::ok));
  all.stopped(requested);
  EXPECT_EQ(all.stop_reason, timeout);
  EXPECT_TRUE(all.failed);
  std::string paths;
  for (const report::Cell& c : all.cells) paths += c.path;
  EXPECT_EQ(paths, "abcd");
  EXPECT_EQ(all.warnings, (std::vector<std::string>{"a warns", "b warns", "c warns", "d warns"}));
}

TEST(BenchResult, ACellOfWrongDataHasFailed) {
  BenchResult r;
  r.add({});
  EXPECT_FALSE(r.failed);
  report::Cell wrong;
  wrong.verify.stale = 1;
  r.add(std::move(wrong));
  EXPECT_TRUE(r.failed);
}

TEST_F(BenchRunTest, ADeviceThatSomebodyWantsBackCountsAsRemoved) {
  BenchRun run(options_, watch_, "path", 512);
  runner_.queues = {queue(StopReason::requested)};
  bool leaving = false;
  (void)phase(run, {}, [&] { return leaving; });
  EXPECT_TRUE(run.going());
  leaving = true;
  (void)phase(run, {}, [&] { return leaving; });
  EXPECT_TRUE(runner_.told_to_stop);
  EXPECT_EQ(run.stop_reason(), StopReason::removed);
}

TEST_F(BenchRunTest, APhaseIsAskedForItsTimeOrItsOperations) {
  double fraction = -1;
  std::string what;
  watch_.progress = [&](double f, const std::string& w) {
    fraction = f;
    what = w;
  };
  BenchRun run(options_, watch_, "path", 512);
  (void)phase(run, {0, 4, "read"});
  EXPECT_EQ(runner_.asked.duration_ticks, 0u);
  EXPECT_EQ(fraction, 0.25) << "the runner has done one of four";
  EXPECT_EQ(what, "read");
  (void)phase(run, {2e-6, 0, {}});
  EXPECT_EQ(runner_.asked.duration_ticks, 2000u);
  (void)phase(run, {1e-12, 0, {}});
  EXPECT_EQ(runner_.asked.duration_ticks, 1u) << "a limit, however short";
  EXPECT_EQ(runner_.counts, (std::vector<u64>{5, 7}));

  options_.timeout_s = 3;
  options_.late_after_s = 2;
  Phase p;
  run.limit(p, runner_);
  EXPECT_EQ(p.timeout_ticks, 3'000'000'000u);
  EXPECT_EQ(p.late_ticks, 2'000'000'000u);
  EXPECT_EQ(p.check_ticks, 100'000u);
}

/// A phase that only prepares or checks is in no live figure, but what it found is.
TEST_F(BenchRunTest, LiveFiguresAreOfWhatIsMeasured) {
  LiveBoard live(true);
  watch_.live = &live;
  BenchRun run(options_, watch_, "path", 512);
  runner_.queues = {queue(StopReason::done, 10)};
  (void)phase(run);
  OpStats back = queue(StopReason::done, 10);
  back.checked = 9;
  back.stale = 1;
  back.failed = 1;
  runner_.queues = {back};
  (void)phase(run, {0, 0, "reading back", false});
  const LiveFigures f = live.figures();
  EXPECT_EQ(f.operations, 10u);
  EXPECT_EQ(f.bytes, 5120u);
  EXPECT_EQ(f.counters.posted, 10u);
  EXPECT_EQ(f.counters.succeeded, 10u);
  EXPECT_EQ(f.counters.checked, 9u);
  EXPECT_EQ(f.counters.stale, 1u);
  EXPECT_EQ(f.counters.failed, 1u);
}

TEST_F(BenchRunTest, RepeatsEndWithTheRun) {
  options_.warmup_s = 1;
  options_.repeats = 5;
  options_.seed = 40;
  struct Bench {
    BenchRunTest& test;
    BenchRun run;
    std::vector<u32> numbers;
    void warm_up() { run.warm_up(test.repeat(run)); }
    void repeat(u32 number) {
      numbers.push_back(number);
      if (number == 2) test.runner_.queues.front().stop = StopReason::timeout;
      run.repeat(number, test.repeat(run));
    }
    [[nodiscard]] bool going() const { return run.going(); }
  } bench{*this, BenchRun(options_, watch_, "path", 512), {}};
  OpStats late = queue(StopReason::duration);
  late.late = 1;
  runner_.queues = {late};
  run_repeats(options_, bench);
  EXPECT_EQ(bench.numbers, (std::vector<u32>{0, 1, 2}));
  const BenchResult r = result(bench.run);
  ASSERT_EQ(r.cell().repeats.size(), 3u) << "the warm-up is none";
  EXPECT_EQ(r.cell().repeats[2].seed, 42u);
  EXPECT_EQ(r.cell().errors.at("late"), 4u) << "the warm-up's count";
  EXPECT_TRUE(r.failed);
}

TEST_F(BenchRunTest, ADrainPostsNothingAndItsErrorsCount) {
  BenchRun run(options_, watch_, "path", 512);
  runner_.queues = {queue(StopReason::done, 10)};
  run.repeat(0, repeat(run));
  OpStats rest = queue(StopReason::done, 0);
  rest.succeeded = rest.late = 1;  // counted as timed out before
  rest.timed_out = ~u64{0};
  rest.duplicated = 2;
  runner_.queues = {rest};
  run.drain(runner_, Phase{}, std::span(items_));
  EXPECT_TRUE(runner_.asked.drain);
  EXPECT_EQ(runner_.counts, (std::vector<u64>{0, 0}));
  const BenchResult r = result(run);
  EXPECT_EQ(r.cell().metrics.ops, 10u);
  EXPECT_EQ(r.cell().errors.at("late"), 1u);
  EXPECT_EQ(r.cell().verify.duplicated, 2u);
  EXPECT_TRUE(r.failed);
}

TEST_F(BenchRunTest, ACellSaysWhatItWasMeasuredOn) {
  options_.initiator = Initiator::gpu;
  options_.gpu = 3;
  BenchRun run(options_, watch_, "path", 512);
  runner_.queues = {queue(StopReason::done, 10)};
  run.repeat(0, repeat(run));
  EXPECT_EQ(run.describe("model", "a device", false).device_name, "a device");
  const BenchResult r = result(run);
  EXPECT_EQ(r.cell().path, "path");
  EXPECT_EQ(r.cell().device_kind, "model");
  EXPECT_EQ(r.cell().initiator_kind, "gpu");
  EXPECT_EQ(r.cell().gpu, 3);
  EXPECT_EQ(r.cell().verify.mode, "none");
  EXPECT_FALSE(r.failed);
  for (const std::string& w : r.warnings) EXPECT_TRUE(w.starts_with("title: ")) << w;
}

}  // namespace
}  // namespace doorbell::measure
