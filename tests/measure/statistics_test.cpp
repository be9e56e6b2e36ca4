// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/statistics.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace doorbell::measure {
namespace {

struct RanksCase {
  std::size_t n, low, high;
  double percent;
};

// shared/facts/measuring.md section 3, to the digits given there.
TEST(MedianRanks, MatchesThePublishedTable) {
  for (const auto& [n, low, high, percent] : std::array<RanksCase, 10>{{{5, 1, 5, 93.75},
                                                                        {6, 1, 6, 96.9},
                                                                        {7, 1, 7, 98.4},
                                                                        {8, 1, 8, 99.2},
                                                                        {9, 2, 8, 96.1},
                                                                        {10, 2, 9, 97.9},
                                                                        {12, 3, 10, 96.1},
                                                                        {15, 4, 12, 96.5},
                                                                        {20, 6, 15, 95.9},
                                                                        {30, 10, 21, 95.7}}}) {
    const MedianRanks r = median_ranks(n);
    EXPECT_EQ(r.low, low) << n;
    EXPECT_EQ(r.high, high) << n;
    EXPECT_NEAR(r.coverage * 100, percent, 0.05) << n;
  }
}

// Counts, for every outcome of n coin tosses, whether the median lies between the ranks.
TEST(MedianRanks, CoverageIsTheExactBinomialSum) {
  for (std::size_t n = 1; n <= 20; ++n) {
    const MedianRanks r = median_ranks(n);
    u64 inside = 0;
    for (u64 outcome = 0; outcome < u64{1} << n; ++outcome) {
      const auto below = static_cast<std::size_t>(__builtin_popcountll(outcome));
      inside += below >= r.low && below < r.high ? 1 : 0;
    }
    EXPECT_NEAR(r.coverage, static_cast<double>(inside) / std::exp2(n), 1e-14) << n;
  }
}

TEST(MedianRanks, LargeSamplesAgreeWithTheNormalApproximation) {
  const MedianRanks r = median_ranks(100'000);
  EXPECT_EQ(r.low + r.high, 100'001u);
  EXPECT_NEAR(static_cast<double>(r.low), 50'000 - 1.96 * std::sqrt(100'000) / 2, 2);
  EXPECT_GE(r.coverage, 0.95);
  EXPECT_LT(r.coverage, 0.952);
}

TEST(MedianRanks, RefusesNothing) {
  EXPECT_THROW(static_cast<void>(median_ranks(0)), Error);
}

// The interval of spread_of() holds the true median as often as it says.
TEST(MedianRanks, IntervalCoversTheMedianOfASkewedDistribution) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> skewed(1.0);
  int inside = 0;
  constexpr int kTrials = 20'000;
  for (int t = 0; t < kTrials; ++t) {
    std::array<double, 9> samples{};
    for (double& s : samples) s = skewed(random);
    const report::Spread s = spread_of(samples);
    inside += s.ci_low <= std::log(2.0) && std::log(2.0) <= s.ci_high ? 1 : 0;
  }
  EXPECT_NEAR(inside / static_cast<double>(kTrials), median_ranks(9).coverage, 0.006);
}

TEST(Statistics, Median) {
  EXPECT_EQ(median(std::array{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median(std::array{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(median(std::array{1e308, 1.5e308}), 1.25e308);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, StandardDeviationKeepsSmallVariationOnALargeMean) {
  EXPECT_FALSE(sample_std(std::array{5.0}).has_value());
  EXPECT_DOUBLE_EQ(*sample_std(std::array{2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}), std::sqrt(32.0 / 7));
  EXPECT_NEAR(*sample_std(std::array{1e12 + 1, 1e12 + 2, 1e12 + 3}), 1.0, 1e-6);
}

TEST(Statistics, NoisyAboveFivePercent) {
  EXPECT_FALSE(spread_of(std::array{98.0, 100.0, 102.9}).noisy);
  EXPECT_TRUE(spread_of(std::array{97.0, 100.0, 102.1}).noisy);
  EXPECT_FALSE(spread_of(std::array{0.0, 0.0, 0.0}).noisy);
  EXPECT_TRUE(spread_of(std::array{-1.0, 0.0, 1.0}).noisy);
}

TEST(Statistics, OutliersAreFlaggedAndKept) {
  const std::array samples{100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 120.0};
  const report::Spread s = spread_of(samples);
  EXPECT_EQ(s.outliers, std::vector<u64>{6});
  EXPECT_EQ(s.max, 120.0);
  EXPECT_EQ(s.median, 100.2);
  EXPECT_EQ(s.ci_high, 120.0);
}

TEST(Statistics, EqualSamplesHideNoOutlierAndMakeNone) {
  EXPECT_TRUE(outliers(std::array{100.0, 100.0, 100.0, 100.0, 101.0}).empty());
  EXPECT_EQ(outliers(std::array{100.0, 100.0, 100.0, 100.0, 150.0}), std::vector<u64>{4});
}

TEST(Statistics, OneRepeatHasNoInterval) {
  const report::Spread s = spread_of(std::array{42.0});
  EXPECT_EQ(s.median, 42.0);
  EXPECT_EQ(s.ci_level, 0.0);
  EXPECT_FALSE(s.std.has_value());
  EXPECT_FALSE(s.noisy);
}

TEST(Statistics, RefusesWhatIsNotANumber) {
  EXPECT_THROW(static_cast<void>(spread_of({})), Error);
  EXPECT_THROW(static_cast<void>(spread_of(std::array{1.0, std::numeric_limits<double>::quiet_NaN()})),
               Error);
  EXPECT_THROW(static_cast<void>(spread_of(std::array{std::numeric_limits<double>::infinity()})), Error);
}

}  // namespace
}  // namespace doorbell::measure
