// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/tally.hpp"
#include "loop/histogram.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace doorbell::measure {
namespace {

std::string status_name(u16 code) {
  return "status " + std::to_string(code);
}

const std::vector<u64> kNoBins(histogram::kBuckets);

/// One queue that posted `posted` operations of which all but the failed and skipped succeeded.
PhaseOutcome outcome(u64 posted, u64 failed, u64 skipped, u64 begin_ns, u64 end_ns) {
  OpStats s;
  s.posted = posted;
  s.failed = failed;
  s.skipped = skipped;
  s.succeeded = posted - failed;
  s.begin_ns = begin_ns;
  s.end_ns = end_ns;
  if (failed > 0) count_status(s, 0x281, failed);
  PhaseOutcome out;
  out.add(s, kNoBins);
  return out;
}

TEST(CountStatus, KeepsTheFirstAndCountsTheRestTogether) {
  OpStats s;
  for (u32 code = 1; code <= OpStats::kKept + 3; ++code) count_status(s, static_cast<u16>(code), 2);
  count_status(s, 3, 5);
  for (u32 i = 0; i + 1 < OpStats::kKept; ++i) {
    EXPECT_EQ(s.statuses[i].code, i + 1);
    EXPECT_EQ(s.statuses[i].count, i + 1 == 3 ? 7u : 2u);
  }
  EXPECT_EQ(s.statuses[OpStats::kKept - 1].code, OpStats::kKept);
  EXPECT_EQ(s.statuses[OpStats::kKept - 1].count, 8u);
}

TEST(PhaseOutcome, ElapsedIsFromTheFirstPostToTheLastCompletionOfThoseThatPosted) {
  OpStats idle;
  idle.begin_ns = 1;
  idle.end_ns = 9'000'000'000;
  PhaseOutcome out = outcome(10, 0, 0, 2'000'000'000, 3'000'000'000);
  out.add(idle, kNoBins);
  EXPECT_DOUBLE_EQ(out.elapsed_s, 1);
  OpStats early;
  early.posted = 1;
  early.begin_ns = 1'500'000'000;
  early.end_ns = 2'500'000'000;
  out.add(early, kNoBins);
  EXPECT_DOUBLE_EQ(out.elapsed_s, 1.5);
  EXPECT_EQ(out.queues.size(), 3u);
}

TEST(Tally, APathOfOnePartHasItsOwnKeyAndPartName) {
  Tally tally("other", 100);
  RepeatTally r;
  r.part("send").add(outcome(10, 0, 0, 0, 1'000'000'000), 100);
  r.part("send").add(outcome(10, 0, 0, 0, 1'000'000'000), 100);
  tally.add(1, r);
  tally.finish(1, StopReason::done, false, status_name);
  const report::Cell& c = tally.cell();
  EXPECT_EQ(c.path, "other");
  ASSERT_EQ(c.parts.size(), 1u);
  EXPECT_EQ(c.parts[0].first, "send");
  EXPECT_EQ(c.parts[0].second.ops, 20u);
  EXPECT_EQ(c.metrics.bytes, 2000u);
  EXPECT_DOUBLE_EQ(c.metrics.ops_per_s, 10);
  EXPECT_EQ(c.extra.at("other").at("submitted"), 20u);
  for (const auto& [kind, count] : c.errors) EXPECT_EQ(count, 0u) << kind;
}

TEST(Tally, PartsKeepTheirOrderAndEmptyOnesAreLeftOut) {
  RepeatTally r;
  r.part("write").add(outcome(4, 0, 0, 0, 1'000'000'000), 1);
  (void)r.part("read");
  r.part("again").add(outcome(2, 0, 0, 0, 1'000'000'000), 1);
  Tally tally("other", 1);
  tally.add(1, r);
  tally.finish(1, StopReason::done, false, status_name);
  ASSERT_EQ(tally.cell().parts.size(), 2u);
  EXPECT_EQ(tally.cell().parts[0].first, "write");
  EXPECT_EQ(tally.cell().parts[1].first, "again");
  EXPECT_EQ(tally.cell().metrics.ops, 6u);
}

TEST(Tally, SkippedAndFailedAreErrorsAndEachOperationEndsOnce) {
  RepeatTally r;
  r.part("send").add(outcome(10, 2, 3, 0, 1'000'000'000), 1);
  Tally tally("other", 1);
  tally.add(7, r);
  tally.finish(1, StopReason::done, false, status_name);
  const report::Cell& c = tally.cell();
  EXPECT_EQ(c.errors.at("skipped"), 3u);
  EXPECT_EQ(c.errors.at("completion"), 2u);
  EXPECT_EQ(c.errors.at("identity"), 0u);
  ASSERT_EQ(c.repeats.size(), 1u);
  EXPECT_EQ(c.repeats[0].seed, 7u);
  EXPECT_EQ(c.repeats[0].errors, 5u);
  EXPECT_EQ(c.extra.at("other").at("completion_statuses").at("status 641"), 2u);
}

TEST(Tally, WarmUpAndTheRestCountAsErrorsOnly) {
  RepeatTally r, bad;
  r.part("send").add(outcome(10, 0, 0, 0, 1'000'000'000), 1);
  bad.part("send").add(outcome(5, 1, 0, 0, 1'000'000'000), 1);
  Tally tally("other", 1);
  tally.warm_up(bad);
  tally.add(1, r);
  tally.after(bad.whole());
  tally.finish(1, StopReason::removed, false, status_name);
  EXPECT_EQ(tally.cell().metrics.ops, 10u);
  EXPECT_EQ(tally.cell().errors.at("completion"), 2u);
  EXPECT_EQ(tally.cell().errors.at("removal"), 1u);
  EXPECT_EQ(tally.cell().repeats[0].errors, 0u);
}

}  // namespace
}  // namespace doorbell::measure
