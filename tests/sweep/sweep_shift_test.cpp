// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The interval of a comparison: by known values, and by simulated comparisons of which the truth is known.
#include <gtest/gtest.h>

#include <cmath>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <functional>
#include <numbers>
#include <random>

#include "sweep/shift.hpp"

namespace doorbell::sweep {
namespace {

using Runs = std::vector<double>;

TEST(SweepShift, QuantilesAreStudents) {
  // One and two degrees of freedom have closed forms; the others are from published tables.
  for (const double level : {0.5, 0.9, 0.95, 0.965, 0.999}) {
    EXPECT_NEAR(student_quantile(1, level) / std::tan(std::numbers::pi * level / 2), 1, 1e-8) << level;
    EXPECT_NEAR(student_quantile(2, level) / (level * std::sqrt(2 / (1 - level * level))), 1, 1e-8) << level;
  }
  EXPECT_NEAR(student_quantile(3, 0.95), 3.182446, 1e-5);
  EXPECT_NEAR(student_quantile(6, 0.95), 2.446912, 1e-5);
  EXPECT_NEAR(student_quantile(30, 0.99), 2.749996, 1e-5);
  EXPECT_NEAR(student_quantile(1e6, 0.95), 1.959966, 1e-5);
}

TEST(SweepShift, TheIntervalHoldsTheFactor) {
  const Runs a = {100, 101, 99, 102, 98, 100.5, 99.5};
  Runs b;
  for (const double x : a) b.push_back(x * 0.8);
  const Factor f = factor_of(a, b);
  EXPECT_NEAR(f.median, 0.8, 0.001);
  EXPECT_LT(f.low, 0.8);
  EXPECT_GT(f.high, 0.8);
  EXPECT_GT(f.low, 0.78);
  EXPECT_EQ(f.level, kLevel);
  EXPECT_EQ(factor_of({a.data(), kLeastRuns}, {b.data(), kLeastRuns}).level, kLevel);
  for (const auto& [n, m] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 3}, {3, 7}, {7, 3}}) {
    const Factor few = factor_of({a.data(), n}, {b.data(), m});
    EXPECT_EQ(few.level, 0) << n << " and " << m;
    EXPECT_LE(few.low, few.median);
    EXPECT_GE(few.high, few.median);
  }
  EXPECT_THROW((void)factor_of(Runs(kMostRuns + 1, 1.0), a), Error);
}

TEST(SweepShift, RunsThatAreAllEqualHaveAPointForAnInterval) {
  const Factor f = factor_of(Runs(7, 50.0), Runs(5, 60.0));
  EXPECT_NEAR(f.low, 1.2, 1e-12);
  EXPECT_NEAR(f.high, 1.2, 1e-12);
}

TEST(SweepShift, FourRunsASideAreWelchs) {
  // Logarithms 0, 1, 2, 3 and 0, 0, 0, 4: means 1.5 and 1, variances of the means 5/12 and 1.
  Runs a, b;
  for (const double x : {0, 1, 2, 3}) a.push_back(std::exp(x));
  for (const double x : {0, 0, 0, 4}) b.push_back(std::exp(x));
  const double variance = 5.0 / 12 + 1, freedom = variance * variance / (25.0 / 144 / 3 + 1.0 / 3);
  const double reach = student_quantile(freedom, 0.965) * std::sqrt(variance);
  const Factor f = factor_of(a, b);
  EXPECT_NEAR(std::log(f.low), -0.5 - reach, 1e-9);
  EXPECT_NEAR(std::log(f.high), -0.5 + reach, 1e-9);
}

/// How often, of simulated comparisons, something is true of the factor that is found.
double share(std::size_t trials, std::size_t n, std::size_t m,
             const std::function<double(bool after)>& logarithm,
             const std::function<bool(const Factor&)>& is) {
  std::size_t found = 0;
  Runs a(n), b(m);
  for (std::size_t t = 0; t < trials; ++t) {
    for (double& x : a) x = std::exp(logarithm(false));
    for (double& x : b) x = std::exp(logarithm(true));
    if (is(factor_of(a, b))) ++found;
  }
  return static_cast<double>(found) / static_cast<double>(trials);
}

bool holds_one(const Factor& f) {
  return f.low <= 1 && f.high >= 1;
}
bool shows_less(const Factor& f) {
  return f.level >= kLevel && f.high < 1;
}

TEST(SweepShift, TheLevelHoldsForEqualAndUnequalSpreads) {
  std::mt19937_64 random(22);
  std::normal_distribution<double> normal;
  constexpr std::size_t kTrials = 4000;
  const double error = std::sqrt(kLevel * (1 - kLevel) / kTrials);  // of one simulated share
  double sum = 0;
  int cases = 0;
  for (const auto& [n, m] : {std::pair<std::size_t, std::size_t>{4, 4},
                             {4, 7},
                             {7, 4},
                             {5, 5},
                             {7, 7},
                             {12, 4},
                             {7, 12},
                             {12, 12}})
    for (const double after : {0.01, 0.03, 0.1, 0.001}) {
      const double covered = share(
          kTrials, n, m, [&](bool b) { return (b ? after : 0.01) * normal(random); }, holds_one);
      EXPECT_GT(covered, kLevel - 3.3 * error) << n << " and " << m << " runs, spreads 0.01 and " << after;
      sum += covered;
      ++cases;
    }
  EXPECT_GT(sum / cases, kLevel - 3.3 * error / std::sqrt(cases));
  EXPECT_LT(sum / cases, 0.975) << "wider than it need be";
}

TEST(SweepShift, WhatSevenRunsFind) {
  std::mt19937_64 random(23);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  const auto found = [&](double factor, double spread, double disturbed) {
    return share(
        500, 7, 7,
        [&](bool b) {
          double x = spread * normal(random) + (b ? std::log(factor) : 0);
          if (uniform(random) < disturbed) x -= 0.09 + 0.3 * uniform(random);
          return x;
        },
        shows_less);
  };
  EXPECT_GT(found(0.9, 0.02, 0), 0.99);
  EXPECT_GT(found(0.94, 0.02, 0), 0.97);
  EXPECT_GT(found(0.9, 0.02, 0.125), 0.6) << "one run in eight is disturbed";
  EXPECT_LT(found(1, 0.02, 0), 0.04);
}

}  // namespace
}  // namespace doorbell::sweep
