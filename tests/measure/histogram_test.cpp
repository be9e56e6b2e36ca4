// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/histogram.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace doorbell::measure {
namespace {

// A value of a uniformly random octave, so that every bucket width is met.
u64 random_ns(std::mt19937_64& random, u32 octaves = histogram::kMaxOctave) {
  const u64 octave = random() % octaves;
  return (u64{1} << octave) + random() % (u64{1} << octave);
}

// The value that percentile() must report for samples in order: that of rank ceil(p/100 * n).
u64 exact_percentile(const std::vector<u64>& ordered, u64 numerator, u64 denominator) {
  const u64 rank = (ordered.size() * numerator + denominator - 1) / denominator;
  return ordered[std::max<u64>(rank, 1) - 1];
}

TEST(Buckets, HoldExactlyTheValuesFromTheirLowerBound) {
  for (u32 i = 0; i < histogram::kOverflow; ++i) {
    const u64 lower = histogram::lower_ns(i);
    const u64 width = histogram::width_ns(i);
    EXPECT_EQ(histogram::bucket_of(lower), i);
    EXPECT_EQ(histogram::bucket_of(lower + width - 1), i);
    EXPECT_EQ(histogram::lower_ns(i + 1), lower + width);
  }
  EXPECT_EQ(histogram::bucket_of(~u64{0}), histogram::kOverflow);
}

// Twenty equal samples, so that p50 is that bucket's midpoint before the clamp; two far ones undo the clamp.
TEST(Histogram, ReportsEveryValueWithinOneInHundredAndTwentyEight) {
  std::mt19937_64 random(2);
  for (int t = 0; t < 2'000; ++t) {
    const u64 v = random_ns(random);
    Histogram h;
    h.record(0);
    for (int i = 0; i < 25; ++i) h.record(v);
    h.record(u64{1} << 34);
    const double reported = *h.percentile(50);
    EXPECT_LE(std::abs(reported - static_cast<double>(v)), static_cast<double>(v) / 128) << v;
    if (v < 128) {
      EXPECT_EQ(reported, static_cast<double>(v));
    }
  }
}

TEST(Histogram, PercentilesAgreeWithASort) {
  std::mt19937_64 random(3);
  for (const u32 octaves : {7u, 14u, 34u}) {
    Histogram h;
    std::vector<u64> ordered;
    for (int i = 0; i < 150'000; ++i) {
      ordered.push_back(random_ns(random, octaves));
      h.record(ordered.back());
    }
    std::ranges::sort(ordered);
    for (const auto& [p, numerator, denominator] :
         std::vector<std::tuple<double, u64, u64>>{{1, 1, 100},
                                                   {50, 50, 100},
                                                   {90, 90, 100},
                                                   {95, 95, 100},
                                                   {99, 99, 100},
                                                   {99.9, 999, 1000},
                                                   {99.99, 9999, 10000}}) {
      const auto exact = static_cast<double>(exact_percentile(ordered, numerator, denominator));
      EXPECT_LE(std::abs(*h.percentile(p) - exact), exact / 128) << p << " of " << octaves << " octaves";
    }
    EXPECT_EQ(*h.percentile(100), static_cast<double>(ordered.back()));
    EXPECT_EQ(*h.min(), static_cast<double>(ordered.front()));
  }
}

TEST(Histogram, PercentilesAreMonotoneAndInsideTheRange) {
  std::mt19937_64 random(4);
  Histogram h;
  for (int i = 0; i < 30'000; ++i) h.record(random_ns(random, 36));
  double last = *h.min();
  for (int i = 0; i <= 1'000'000; i += 97) {
    const auto value = h.percentile(i / 1e4);
    if (!value) continue;
    EXPECT_GE(*value, last);
    EXPECT_LE(*value, *h.max());
    last = *value;
  }
}

TEST(Histogram, MergeEqualsUnion) {
  std::mt19937_64 random(5);
  Histogram both, a, b, from_counters;
  u64 min = ~u64{0}, max = 0, sum = 0;
  double sum_sq = 0;
  for (int i = 0; i < 20'000; ++i) {
    const u64 v = random_ns(random, 30);
    both.record(v);
    if (random() % 3 == 0) {
      a.record(v);
    } else {
      b.record(v);
      min = std::min(min, v);
      max = std::max(max, v);
      sum += v;
      sum_sq += static_cast<double>(v) * static_cast<double>(v);
    }
  }
  from_counters.merge(a);
  from_counters.merge(b.counts(), min, max, sum, sum_sq);
  a.merge(b);
  for (const Histogram* merged : {&a, &from_counters}) {
    EXPECT_TRUE(std::ranges::equal(merged->counts(), both.counts()));
    EXPECT_EQ(merged->count(), both.count());
    EXPECT_EQ(merged->min(), both.min());
    EXPECT_EQ(merged->max(), both.max());
    EXPECT_EQ(merged->mean(), both.mean());
    EXPECT_NEAR(*merged->std(), *both.std(), *both.std() * 1e-9);
    for (const double p : {1.0, 50.0, 99.0, 99.9}) EXPECT_EQ(merged->percentile(p), both.percentile(p));
  }
}

TEST(Histogram, MergeOfNothingChangesNothing) {
  Histogram h;
  h.record(5);
  h.merge(Histogram());
  h.merge(Histogram().counts(), ~u64{0}, 0, 0, 0);
  EXPECT_EQ(h.count(), 1u);
  EXPECT_EQ(h.min(), 5.0);
  EXPECT_EQ(h.max(), 5.0);
}

TEST(Histogram, MergeRefusesContradictions) {
  Histogram h, other;
  other.record(1'000);
  other.record(2'000);
  const auto merge = [&](u64 min, u64 max, double sum_sq) {
    h.merge(other.counts(), min, max, 3'000, sum_sq);
  };
  EXPECT_THROW(merge(2'000, 1'000, 5e6), Error);
  EXPECT_THROW(merge(1, 2'000, 5e6), Error);
  EXPECT_THROW(merge(1'000, 9'000, 5e6), Error);
  EXPECT_THROW(merge(1'000, 2'000, std::nan("")), Error);
  EXPECT_THROW(h.merge(other.counts().first(7), 1'000, 2'000, 3'000, 5e6), Error);
  EXPECT_EQ(h.count(), 0u);
  merge(1'000, 2'000, 5e6);
  EXPECT_EQ(h.count(), 2u);
}

TEST(Histogram, APercentileNeedsTenSamplesAboveIt) {
  Histogram h;
  for (u64 i = 1; i <= 19; ++i) h.record(i);
  EXPECT_FALSE(h.percentile(50).has_value());
  h.record(20);
  EXPECT_EQ(h.percentile(50), 10.0);
  EXPECT_FALSE(h.percentile(90).has_value());
  EXPECT_EQ(h.percentile(100), 20.0);
}

TEST(Histogram, P9999StartsAtAHundredThousandSamples) {
  Histogram h;
  for (int i = 0; i < 99'999; ++i) h.record(50);
  EXPECT_FALSE(h.to_latency().p99_99.has_value());
  h.record(50);
  EXPECT_EQ(h.to_latency().p99_99, 50.0);
}

TEST(Histogram, StandardDeviationKeepsNanosecondsOnALargeMean) {
  Histogram h;
  for (int i = 0; i < 1'000'000; ++i) h.record(10'000'000'000 + (i % 2 == 0 ? 1 : 0));
  EXPECT_NEAR(*h.std(), 0.5, 1e-6);
  EXPECT_EQ(*h.mean(), 10'000'000'000.5);
}

TEST(Histogram, ValuesPastTheLastBucketKeepTheirMaximum) {
  Histogram h;
  const u64 minute = 60'000'000'000;
  for (int i = 0; i < 100; ++i) h.record(minute);
  EXPECT_EQ(h.percentile(50), static_cast<double>(minute));
  EXPECT_EQ(h.max(), static_cast<double>(minute));
}

TEST(Histogram, APercentileBeyondTheRangeIsNotGuessed) {
  Histogram h;
  for (int i = 0; i < 56; ++i) h.record(18'000'000'000);
  for (int i = 0; i < 4; ++i) h.record(40'000'000'000);
  EXPECT_FALSE(h.percentile(50).has_value()) << "18 s and 40 s share a bucket";
  EXPECT_EQ(h.max(), 40e9);
  for (int i = 0; i < 60; ++i) h.record(1'000'000);
  EXPECT_NEAR(*h.percentile(50), 1e6, 1e6 / 128);
  EXPECT_FALSE(h.percentile(90).has_value());
  EXPECT_EQ(h.to_latency().bins.back(), (std::pair<u64, u64>{u64{1} << histogram::kMaxOctave, 60}));
  Histogram close;
  for (int i = 0; i < 30; ++i) close.record(60'000'000'000 + static_cast<u64>(i) * 10'000'000);
  EXPECT_NEAR(*close.percentile(50), 60.14e9, 60e9 / 128) << "the least and the greatest confine it";
}

TEST(Histogram, EmptyIsEmptyAndClearEmpties) {
  Histogram h;
  h.record(9);
  h.clear();
  const report::Latency l = h.to_latency();
  EXPECT_EQ(l.count, 0u);
  EXPECT_FALSE(l.min || l.mean || l.std || l.p50 || l.max);
  EXPECT_TRUE(l.bins.empty());
  EXPECT_FALSE(h.percentile(100).has_value());
  EXPECT_THROW(static_cast<void>(h.percentile(100.1)), Error);
  EXPECT_THROW(static_cast<void>(h.percentile(std::nan(""))), Error);
}

TEST(Histogram, BinsHoldEveryOperation) {
  std::mt19937_64 random(6);
  Histogram h;
  for (int i = 0; i < 5'000; ++i) h.record(random_ns(random, 20));
  u64 total = 0;
  for (const auto& [lower, count] : h.to_latency().bins) {
    EXPECT_GT(count, 0u);
    EXPECT_EQ(histogram::lower_ns(histogram::bucket_of(lower)), lower);
    total += count;
  }
  EXPECT_EQ(total, 5'000u);
}

}  // namespace
}  // namespace doorbell::measure
