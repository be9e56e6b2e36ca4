// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/shift.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.hpp"

namespace doorbell::sweep {

namespace {

// Found by simulation (tests/sweep/sweep_shift_test.cpp): with this share of the error that is allowed, the
// interval covers kLevel for 4 to 12 runs a side and ratios of the spreads from 1/100 to 100. At 0.95 it
// would cover 93.5 % in the worst case.
constexpr double kStudentShare = 0.7;
constexpr std::size_t kOneDisturbedIn = 7;  // so many runs for each that is trimmed at either end

/// P(-t < T < t) for Student's T: the regularised incomplete beta function I(freedom/2, 1/2) at
/// freedom / (freedom + t^2), by its continued fraction (Lentz).
double student_probability(double freedom, double t) {
  const double x = freedom / (freedom + t * t);
  const auto fraction = [](double a, double b, double at) {
    constexpr double kTiny = 1e-300;
    const auto kept = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
    double c = 1, d = 1 / kept(1 - (a + b) * at / (a + 1)), h = d;
    for (int m = 1; m < 300; ++m) {
      const auto step = [&](double factor) {
        d = 1 / kept(1 + factor * d);
        c = kept(1 + factor / c);
        h *= c * d;
      };
      step(m * (b - m) * at / ((a + 2 * m - 1) * (a + 2 * m)));
      step(-(a + m) * (a + b + m) * at / ((a + 2 * m) * (a + 2 * m + 1)));
      if (std::abs(c * d - 1) < 1e-13) break;
    }
    return h;
  };
  const double a = freedom / 2, b = 0.5;
  const double scale =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges quickly on its own side of the mean only.
  return x < (a + 1) / (a + b + 2) ? 1 - scale * fraction(a, b, x) / a : scale * fraction(b, a, 1 - x) / b;
}

/// Of the logarithms of one side's figures.
struct Centre {
  double mean = 0;      ///< without the lowest and the highest
  double variance = 0;  ///< of that mean
  double freedom = 1;
};

Centre centre_of(std::span<const double> figures) {
  std::vector<double> logs;
  for (const double f : figures) logs.push_back(std::log(f));
  std::ranges::sort(logs);
  const std::size_t n = logs.size(), cut = n / kOneDisturbedIn, kept = n - 2 * cut;
  Centre c;
  for (std::size_t i = cut; i < n - cut; ++i) c.mean += logs[i] / static_cast<double>(kept);
  // A value that was cut off counts as the nearest value that was not (Winsorised), so that the spread is not
  // too small.
  for (std::size_t i = 0; i < cut; ++i) {
    logs[i] = logs[cut];
    logs[n - 1 - i] = logs[n - 1 - cut];
  }
  const double std = measure::sample_std(logs).value_or(0);
  const auto k = static_cast<double>(kept);
  c.variance = std * std * static_cast<double>(n - 1) / (k * (k - 1));
  c.freedom = k - 1;
  return c;
}

}  // namespace

double student_quantile(double freedom, double level) {
  double low = 0, high = 2;
  while (student_probability(freedom, high) < level) high *= 2;
  while (high - low > 1e-10 * high) {
    const double middle = (low + high) / 2;
    (student_probability(freedom, middle) < level ? low : high) = middle;
  }
  return high;
}

Factor factor_of(std::span<const double> before, std::span<const double> after, double level) {
  if (before.size() > kMostRuns || after.size() > kMostRuns)
    throw Error("comparing", fmt::format("a side has more than {} runs of one cell", kMostRuns));
  std::vector<double> factors;
  factors.reserve(before.size() * after.size());
  for (const double a : before)
    for (const double b : after) factors.push_back(std::log(b / a));
  std::ranges::sort(factors);
  const double middle = measure::median(factors);
  Factor f{.median = std::exp(middle), .low = std::exp(factors.front()), .high = std::exp(factors.back())};
  if (std::min(before.size(), after.size()) < kLeastRuns) return f;
  const Centre a = centre_of(before), b = centre_of(after);
  const double variance = a.variance + b.variance;
  double reach = 0;
  if (variance > 0) {
    // Welch and Satterthwaite's degrees of freedom.
    const double freedom =
        variance * variance / (a.variance * a.variance / a.freedom + b.variance * b.variance / b.freedom);
    reach = student_quantile(freedom, 1 - kStudentShare * (1 - level)) * std::sqrt(variance);
  }
  // With very uneven runs the estimate may lie outside of what the means say; the interval holds it.
  f.low = std::exp(std::min(b.mean - a.mean - reach, middle));
  f.high = std::exp(std::max(b.mean - a.mean + reach, middle));
  f.level = level;
  return f;
}

}  // namespace doorbell::sweep
