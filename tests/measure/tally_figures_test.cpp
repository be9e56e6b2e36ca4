// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every figure that a Tally reports, compared with values calculated by hand.

#include <gtest/gtest.h>

#include <vector>

#include "loop/histogram.hpp"
#include "measure/counters.hpp"
#include "measure/tally.hpp"

namespace doorbell::measure {
namespace {

constexpr u64 kSecond = 1'000'000'000;

std::string code_name(u16 code) {
  return std::to_string(code);
}

/// A queue that did `ops` operations in so many ns, by both clocks.
OpStats queue(u64 ops, u64 ns = kSecond) {
  OpStats s;
  s.posted = s.succeeded = ops;
  s.begin_ns = 5;
  s.end_ns = 5 + ns;
  s.busy_ticks = ns;
  return s;
}

PhaseOutcome phase(const std::vector<OpStats>& queues) {
  PhaseOutcome out;
  for (const OpStats& s : queues) out.add(s, std::vector<u64>(histogram::kBuckets));
  return out;
}

/// Queues whose operations took these ns.
PhaseOutcome timed(std::vector<OpStats> queues, const std::vector<std::vector<u64>>& ns) {
  PhaseOutcome out;
  for (std::size_t q = 0; q < queues.size(); ++q) {
    std::vector<u64> bins(histogram::kBuckets);
    OpStats& s = queues[q];
    for (const u64 t : ns[q]) {
      ++bins[histogram::bucket_of(t)];
      s.min_ns = std::min(s.min_ns, t);
      s.max_ns = std::max(s.max_ns, t);
      s.sum_ns += t;
      s.sum_sq_ns += static_cast<double>(t) * static_cast<double>(t);
    }
    out.add(s, bins);
  }
  return out;
}

RepeatTally repeat(const PhaseOutcome& outcome, u64 op_bytes = 1) {
  RepeatTally r;
  r.part("send").add(outcome, op_bytes);
  return r;
}

report::Cell cell_of(Tally& tally, double ns_per_tick = 1, bool substeps = false) {
  tally.finish(ns_per_tick, StopReason::done, substeps, code_name);
  return tally.cell();
}

// --- which repeat ------------------------------------------------------------------------------------------

TEST(TallyMedian, IsTheMiddleOneByRateAndOfTwoMiddlesTheSlower) {
  struct Case {
    std::vector<u64> rates;
    u64 median;
  };
  for (const Case& c : {Case{{7}, 7}, Case{{9, 4}, 4}, Case{{4, 9}, 4}, Case{{3, 1, 2}, 2},
                        Case{{40, 10, 30, 20}, 20}, Case{{5, 6, 1, 2, 4, 3}, 3}}) {
    Tally tally("p", 10);
    for (const u64 rate : c.rates) tally.add(rate, repeat(phase({queue(rate)}), 10));
    const report::Cell cell = cell_of(tally);
    EXPECT_EQ(cell.metrics.ops, c.median);
    EXPECT_EQ(cell.metrics.bytes, 10 * c.median);
    ASSERT_EQ(cell.parts.size(), 1u);
    EXPECT_EQ(cell.parts[0].second.ops, c.median);
    // The list keeps the order of the runs.
    ASSERT_EQ(cell.repeats.size(), c.rates.size());
    for (std::size_t i = 0; i < c.rates.size(); ++i) EXPECT_EQ(cell.repeats[i].seed, c.rates[i]);
  }
}

// --- what something else has counted -----------------------------------------------------------------------

TEST(AddRepeats, TheMedianRepeatsFiguresAndProcessorTimeAreTheCells) {
  const auto repeat_of = [](u64 seed, u64 ops, double cpu_s) {
    return RepeatFigures{seed,
                         metrics_of(ops, 100 * ops, 2),
                         seed,
                         {{.name = "tx-0", .user_s = cpu_s}, {.name = "", .system_s = cpu_s}}};
  };
  report::Cell cell;
  const auto warnings = add_repeats(cell, {repeat_of(1, 30, 1), repeat_of(2, 10, 2), repeat_of(3, 20, 3)});
  EXPECT_EQ(warnings, std::vector<std::string>{"noisy: the repeats' rates spread by 100 %"});
  EXPECT_EQ(cell.metrics.ops, 20u);
  EXPECT_DOUBLE_EQ(cell.metrics.ops_per_s, 10);
  EXPECT_DOUBLE_EQ(cell.metrics.bytes_per_s, 1000);
  EXPECT_DOUBLE_EQ(cell.cost.cpu_user_s, 3);
  EXPECT_DOUBLE_EQ(cell.cost.cpu_system_s, 3);
  EXPECT_DOUBLE_EQ(cell.cost.cpu_ns_per_op.value(), 6e9 / 20);
  ASSERT_EQ(cell.cost.threads.size(), 1u) << "one has a name";
  EXPECT_DOUBLE_EQ(cell.cost.threads[0].cpu_s, 3);
  ASSERT_EQ(cell.repeats.size(), 3u);
  EXPECT_EQ(cell.repeats[1].errors, 2u);
  EXPECT_DOUBLE_EQ(cell.spread.at("ops_per_s").median, 10);
}

TEST(AddRepeats, WithoutRepeatsOrThreadsThereAreNoFigures) {
  report::Cell cell;
  EXPECT_TRUE(add_repeats(cell, {}).empty());
  EXPECT_EQ(cell.metrics.ops, 0u);
  EXPECT_TRUE(add_repeats(cell, {{.seed = 1, .metrics = metrics_of(5, 5, 0)}}).empty());
  EXPECT_EQ(cell.metrics.ops, 5u);
  EXPECT_EQ(cell.metrics.ops_per_s, 0) << "no time has passed";
  EXPECT_FALSE(cell.cost.cpu_ns_per_op);
}

// --- rates and latencies -----------------------------------------------------------------------------------

TEST(TallyFigures, RatesAreOfTheTimeFromTheFirstPostToTheLastCompletion) {
  OpStats late = queue(300, 3 * kSecond);
  late.begin_ns += kSecond;
  late.end_ns += kSecond;
  late.succeeded = 200;
  late.failed = 100;
  RepeatTally r;
  r.part("write").add(phase({queue(100), late}), 512);  // 4 s
  r.part("write").add(phase({queue(50)}), 512);         // 1 s
  r.part("read").add(phase({queue(150, 5 * kSecond)}), 512);
  Tally tally("p", 512);
  tally.add(1, r);
  const report::Cell c = cell_of(tally);
  EXPECT_EQ(c.metrics.ops, 500u);
  EXPECT_EQ(c.metrics.bytes, 500u * 512);
  EXPECT_DOUBLE_EQ(c.metrics.elapsed_s, 10);
  EXPECT_DOUBLE_EQ(c.metrics.ops_per_s, 50);
  EXPECT_DOUBLE_EQ(c.metrics.bytes_per_s, 25600);
  ASSERT_EQ(c.parts.size(), 2u);
  EXPECT_DOUBLE_EQ(c.parts[0].second.ops_per_s, 70);
  EXPECT_DOUBLE_EQ(c.parts[1].second.ops_per_s, 30);
  EXPECT_DOUBLE_EQ(c.repeats[0].ops_per_s, 50);
  EXPECT_DOUBLE_EQ(c.repeats[0].bytes_per_s, 25600);
}

TEST(TallyFigures, LatenciesAreOfAllQueuesAndParts) {
  RepeatTally r;
  r.part("write").add(timed({queue(1), queue(2)}, {{100}, {20, 60}}), 1);
  r.part("read").add(timed({queue(1)}, {{40}}), 1);
  Tally tally("p", 1);
  tally.add(1, r);
  const report::Cell c = cell_of(tally);
  EXPECT_EQ(c.metrics.latency_ns.count, 4u);
  EXPECT_EQ(c.metrics.latency_ns.min, 20);
  EXPECT_EQ(c.metrics.latency_ns.max, 100);
  EXPECT_EQ(c.metrics.latency_ns.mean, 55);
  EXPECT_NEAR(c.metrics.latency_ns.std.value(), 34.1565, 1e-4);
  EXPECT_EQ(c.parts.at(0).second.latency_ns.mean, 60);
  EXPECT_EQ(c.parts.at(1).second.latency_ns.mean, 40);
  EXPECT_EQ(c.repeats.at(0).mean_ns, 55);
}

TEST(TallyFigures, ARepeatHasItsOwnPercentiles) {
  Tally tally("p", 1);
  for (const u64 scale : {1, 2}) {
    std::vector<u64> ns;
    for (u64 i = 1; i <= 20'000; ++i)
      ns.push_back(i <= 19'960 ? (i <= 19'000 ? 10 * scale : 20 * scale) : 40 * scale);
    tally.add(scale, repeat(timed({queue(20'000)}, {ns})));
  }
  const report::Cell c = cell_of(tally);
  for (const std::size_t i : {0, 1}) {
    const double scale = i == 0 ? 1 : 2;
    EXPECT_EQ(c.repeats.at(i).p50_ns, 10 * scale);
    EXPECT_EQ(c.repeats.at(i).p99_ns, 20 * scale);
    EXPECT_EQ(c.repeats.at(i).p99_9_ns, 40 * scale);
    EXPECT_DOUBLE_EQ(c.repeats.at(i).mean_ns.value(), 10.54 * scale);
  }
}

// --- costs -------------------------------------------------------------------------------------------------

OpStats costly() {
  OpStats s = queue(400);
  s.succeeded = 150;
  s.failed = 50;
  s.timed_out = 200;
  s.sq_doorbells = 100;
  s.cq_doorbells = 20;
  s.register_writes = 160;
  s.polls = 1000;
  s.empty_polls = 700;
  s.build_ticks = 4000;
  s.enqueue_ticks = 8000;
  s.sq_doorbell_ticks = 12000;
  s.cq_poll_ticks = 16000;
  s.cq_doorbell_ticks = 2000;
  return s;
}

TEST(TallyFigures, CostsAreOfAnOperationThatWasPosted) {
  PhaseOutcome out = phase({costly()});
  out.threads = {{"initiator-0", 2e-6, 1e-6}, {"initiator-1", 4e-6, 1e-6}};
  out.threads[0].wall_s = 4e-6;
  out.threads[1].wall_s = 6e-6;
  RepeatTally r = repeat(out);
  PhaseOutcome more = phase({});
  more.threads = {{"initiator-0", 1e-6, 1e-6}};
  more.threads[0].wall_s = 2e-6;
  r.part("again").add(more, 1);
  Tally tally("p", 1);
  tally.add(1, r);
  const report::Cell c = cell_of(tally);
  EXPECT_DOUBLE_EQ(c.cost.cpu_user_s, 7e-6);
  EXPECT_DOUBLE_EQ(c.cost.cpu_system_s, 3e-6);
  EXPECT_DOUBLE_EQ(c.cost.cpu_ns_per_op.value(), 25);
  EXPECT_NEAR(c.cost.elapsed_s.value(), std::max(6e-6, out.elapsed_s) + 2e-6, 1e-12) << "the longest threads";
  ASSERT_EQ(c.cost.threads.size(), 2u);
  EXPECT_EQ(c.cost.threads[0].name, "initiator-0");
  EXPECT_DOUBLE_EQ(c.cost.threads[0].cpu_s, 5e-6);
  EXPECT_EQ(c.cost.threads[1].name, "initiator-1");
  EXPECT_DOUBLE_EQ(c.cost.threads[1].cpu_s, 5e-6);
  EXPECT_DOUBLE_EQ(c.cost.doorbells_per_op.value(), 0.3);
  EXPECT_DOUBLE_EQ(c.cost.polls_per_completion.value(), 5) << "what timed out brought no completion";
  EXPECT_DOUBLE_EQ(c.extra.at("p").at("sq_doorbells_per_op").get<double>(), 0.25);
  EXPECT_DOUBLE_EQ(c.extra.at("p").at("cq_doorbells_per_op").get<double>(), 0.05);
  EXPECT_DOUBLE_EQ(c.extra.at("p").at("register_writes_per_op").get<double>(), 0.4);
  EXPECT_EQ(c.extra.at("p").at("empty_polls"), 700u);
  EXPECT_EQ(c.extra.at("p").at("submitted"), 400u);
  EXPECT_FALSE(c.substeps_ns.build) << "it was not asked for";
}

TEST(TallyFigures, SubstepsAreNanosecondsOfAnOperationThatWasPosted) {
  Tally tally("p", 1);
  tally.add(1, repeat(timed({costly()}, {{100, 300}})));
  const report::Cell c = cell_of(tally, 0.5, true);
  EXPECT_EQ(c.substeps_ns.build, 5);
  EXPECT_EQ(c.substeps_ns.enqueue, 10);
  EXPECT_EQ(c.substeps_ns.sq_doorbell, 15);
  EXPECT_EQ(c.substeps_ns.cq_poll, 20);
  EXPECT_EQ(c.substeps_ns.cq_doorbell, 2.5);
  EXPECT_EQ(c.substeps_ns.total, 200);
}

TEST(TallyFigures, NothingPostedCostsNothing) {
  Tally tally("p", 1);
  tally.add(1, repeat(phase({OpStats{}})));
  const report::Cell c = cell_of(tally, 1, true);
  EXPECT_FALSE(c.cost.cpu_ns_per_op);
  EXPECT_FALSE(c.cost.doorbells_per_op);
  EXPECT_FALSE(c.cost.polls_per_completion);
  EXPECT_FALSE(c.substeps_ns.build);
  EXPECT_EQ(c.metrics.ops_per_s, 0);
  EXPECT_TRUE(c.parts.empty());
}

// --- spread ------------------------------------------------------------------------------------------------

TEST(TallySpread, OfRatesAndLatencies) {
  Tally tally("p", 10);
  for (const u64 n : {40, 10, 20})
    tally.add(n, repeat(timed({queue(n)}, {std::vector<u64>(40, 10 * n)}), 10));
  const report::Cell c = cell_of(tally);
  const report::Spread& ops = c.spread.at("ops_per_s");
  EXPECT_DOUBLE_EQ(ops.median, 20);
  EXPECT_DOUBLE_EQ(ops.min, 10);
  EXPECT_DOUBLE_EQ(ops.max, 40);
  EXPECT_NEAR(ops.mean, 70.0 / 3, 1e-9);
  EXPECT_TRUE(ops.noisy);
  EXPECT_DOUBLE_EQ(c.spread.at("bytes_per_s").median, 200);
  EXPECT_DOUBLE_EQ(c.spread.at("mean_ns").median, 200);
  EXPECT_DOUBLE_EQ(c.spread.at("mean_ns").max, 400);
  EXPECT_DOUBLE_EQ(c.spread.at("p50_ns").median, 200);
  EXPECT_EQ(c.spread.count("p99_ns"), 0u) << "40 samples have none";
  ASSERT_EQ(tally.warnings().size(), 1u);
  EXPECT_NE(tally.warnings()[0].find("spread by 150 %"), std::string::npos) << tally.warnings()[0];
}

TEST(TallySpread, WhatOneRepeatDoesNotHaveIsLeftOut) {
  Tally tally("p", 1);
  tally.add(1, repeat(timed({queue(100)}, {{10}})));
  tally.add(2, repeat(phase({queue(100)})));
  const report::Cell c = cell_of(tally);
  EXPECT_EQ(c.spread.count("ops_per_s"), 1u);
  EXPECT_EQ(c.spread.count("mean_ns"), 0u);
  EXPECT_TRUE(tally.warnings().empty());
  Tally one("p", 1);
  one.add(1, repeat(phase({queue(100)})));
  EXPECT_TRUE(cell_of(one).spread.empty());
}

// --- errors ------------------------------------------------------------------------------------------------

TEST(TallyErrors, EachClassCountsOnceInItsRepeat) {
  constexpr u64 OpCounters::*kErrors[] = {
      &OpCounters::failed,   &OpCounters::timed_out, &OpCounters::aborted,    &OpCounters::late,
      &OpCounters::protocol, &OpCounters::corrupt,   &OpCounters::misplaced,  &OpCounters::stale,
      &OpCounters::missing,  &OpCounters::unchecked, &OpCounters::duplicated, &OpCounters::skipped};
  Tally tally("p", 1);
  u64 n = 0;
  for (const auto field : kErrors) {
    OpStats s = queue(100);
    s.*field = ++n;
    tally.add(n, repeat(phase({s})));
  }
  OpStats good = queue(100);
  good.checked = 100;
  good.unverifiable = 100;
  good.polls = good.empty_polls = 100;
  tally.add(n + 1, repeat(phase({good})));
  const report::Cell c = cell_of(tally);
  ASSERT_EQ(c.repeats.size(), n + 1);
  for (u64 i = 0; i < n; ++i) EXPECT_EQ(c.repeats[i].errors, i + 1) << "class " << i;
  EXPECT_EQ(c.repeats[n].errors, 0u) << "what was checked is no error";
}

TEST(TallyErrors, WhatIsWrongInAPhaseAroundAMeasuredOneIsAllAdded) {
  OpStats queues[2] = {};
  u64 n = 0, sum = 0;
  for (const OpCounter& c : kCounters) ++n, queues[n % 2].*c.field = n;
  for (const OpCounter& c : counters_of<CounterClass::error, CounterClass::failure>())
    sum += queues[0].*c.field + queues[1].*c.field;
  OpStats errors = {}, findings = {};
  add_errors(errors, queues);
  EXPECT_EQ(errors_of(errors), sum);
  EXPECT_EQ(errors.checked, queues[0].checked + queues[1].checked);
  // The other end's operations that did not end are counted by this end.
  add_findings(findings, queues);
  EXPECT_EQ(errors_of(findings), sum - errors.late - errors.timed_out - errors.aborted);
  EXPECT_GT(findings.unchecked, 0u);
}

TEST(TallyErrors, AllQueuesAndRepeatsAreAddedUp) {
  OpStats s = queue(1000);
  s.succeeded = 990;
  s.failed = 1;
  s.timed_out = 2;
  s.aborted = 3;
  s.late = 4;
  s.skipped = 5;
  s.protocol = 6;
  s.checked = 7;
  s.unverifiable = 8;
  s.corrupt = 9;
  s.misplaced = 10;
  s.stale = 11;
  s.missing = 12;
  s.duplicated = 13;
  s.unchecked = 14;
  Tally tally("p", 64);
  tally.warm_up(repeat(phase({s})));
  tally.add(1, repeat(phase({s, s})));
  tally.after(repeat(phase({s})).whole());
  tally.finish(1, StopReason::reset, false, code_name);
  const report::Cell& c = tally.cell();
  EXPECT_EQ(c.errors, (report::Counts{{"completion", 4},
                                      {"timeout", 8},
                                      {"aborted", 12},
                                      {"late", 16},
                                      {"skipped", 20},
                                      {"protocol", 24},
                                      {"unchecked", 56},
                                      {"removal", 0},
                                      {"reset", 1},
                                      {"identity", 4 * 4}}))
      << "of 1000 that were posted 996 ended";
  EXPECT_EQ(c.verify.checked, 28u);
  EXPECT_EQ(c.verify.checked_bytes, 28u * 64);
  EXPECT_EQ(c.verify.unverifiable, 32u);
  EXPECT_EQ(c.verify.corrupt, 36u);
  EXPECT_EQ(c.verify.misplaced, 40u);
  EXPECT_EQ(c.verify.stale, 44u);
  EXPECT_EQ(c.verify.missing, 48u);
  EXPECT_EQ(c.verify.duplicated, 52u);
}

TEST(TallyErrors, WhatEndedWithoutBeingPostedBreaksTheIdentityToo) {
  OpStats s = queue(10);
  s.succeeded = 13;
  Tally tally("p", 1);
  tally.add(1, repeat(phase({s})));
  EXPECT_EQ(cell_of(tally).errors.at("identity"), 3u);
}

TEST(TallyErrors, TheFirstFailuresAreListedByTheirNames) {
  OpStats s = queue(10);
  using pattern::Verdict;
  for (const Verdict v : {Verdict::stale, Verdict::misplaced, Verdict::missing, Verdict::corrupt})
    count_verdict(s, s, v, 100 + static_cast<u64>(v), 200 + static_cast<u64>(v));
  Tally tally("p", 1);
  tally.add(1, repeat(phase({s})));
  const report::Cell c = cell_of(tally);
  ASSERT_EQ(c.verify.first.size(), 4u);
  const char* const names[] = {"stale", "misplaced", "missing", "corrupt"};
  const Verdict verdicts[] = {Verdict::stale, Verdict::misplaced, Verdict::missing, Verdict::corrupt};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(c.verify.first[i].kind, names[i]);
    EXPECT_EQ(c.verify.first[i].address, 100 + static_cast<u64>(verdicts[i]));
    EXPECT_EQ(c.verify.first[i].sequence, 200 + static_cast<u64>(verdicts[i]));
  }
}

// --- the initiator's clock ---------------------------------------------------------------------------------

/// The warnings about a clock that made `ticks` ticks of 2 ns in `ns`.
std::vector<std::string> clock_warnings(u64 ticks, u64 ns, u64 timed_out = 0) {
  Tally tally("p", 1);
  // Over all repeats and parts together.
  for (u64 seed : {1, 2}) {
    OpStats s = queue(100, ns / 4);
    s.busy_ticks = ticks / 4;
    s.timed_out = timed_out;
    RepeatTally r;
    r.part("write").add(phase({s}), 1);
    r.part("read").add(phase({s}), 1);
    tally.add(seed, r);
  }
  (void)cell_of(tally, 2);
  return tally.warnings();
}

TEST(TallyClock, ARateTwoPercentOffIsTold) {
  constexpr u64 kNs = 4'000'000'000;
  EXPECT_TRUE(clock_warnings(kNs / 2, kNs).empty());
  EXPECT_TRUE(clock_warnings(kNs / 2 * 1019 / 1000, kNs).empty());
  EXPECT_TRUE(clock_warnings(kNs / 2 * 981 / 1000, kNs).empty());
  const auto fast = clock_warnings(kNs / 2 * 1021 / 1000, kNs);
  ASSERT_EQ(fast.size(), 1u);
  EXPECT_NE(fast[0].find("ran at 0.979 of its calibrated rate"), std::string::npos) << fast[0];
  const auto slow = clock_warnings(kNs / 2 * 979 / 1000, kNs);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_NE(slow[0].find("ran at 1.021 of its calibrated rate"), std::string::npos) << slow[0];
}

TEST(TallyClock, ShortRunsAndTimeOutsTellNothingOfIt) {
  EXPECT_TRUE(clock_warnings(800'000, 1'000'000).empty()) << "a millisecond";
  EXPECT_EQ(clock_warnings(800'000, 1'000'004).size(), 1u) << "and more";
  EXPECT_TRUE(clock_warnings(0, 4'000'000'000).empty()) << "nothing was timed";
  EXPECT_TRUE(clock_warnings(4'000'000'000, 4'000'000'000, 1).empty());
}

}  // namespace
}  // namespace doorbell::measure
