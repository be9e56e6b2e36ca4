// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/statistics.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

namespace doorbell::measure {

namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> copy(samples.begin(), samples.end());
  std::ranges::sort(copy);
  return copy;
}

double median_of_sorted(const std::vector<double>& s) {
  if (s.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::size_t mid = s.size() / 2;
  return s.size() % 2 == 1 ? s[mid] : std::midpoint(s[mid - 1], s[mid]);
}

// P(exactly k of n fair coin tosses show heads). In logarithms, because 2^-n underflows for large n.
long double coin_probability(std::size_t n, std::size_t k) {
  const auto log_factorial = [](std::size_t v) { return std::lgamma(static_cast<long double>(v) + 1.0L); };
  return std::exp(log_factorial(n) - log_factorial(k) - log_factorial(n - k) -
                  static_cast<long double>(n) * std::log(2.0L));
}

}  // namespace

MedianRanks median_ranks(std::size_t n, double level) {
  if (n == 0) throw Error("median interval", "there are no samples");
  // The true median lies outside (x[low], x[high]) when fewer than `low` samples fall on one side of it,
  // and each sample falls on either side with probability 1/2.
  const auto coverage_of = [](long double tail) { return static_cast<double>(1.0L - 2.0L * tail); };
  long double tail = coin_probability(n, 0);
  MedianRanks best{1, n, std::max(0.0, coverage_of(tail))};
  for (std::size_t low = 2; low <= n / 2; ++low) {
    tail += coin_probability(n, low - 1);
    const double coverage = coverage_of(tail);
    if (coverage < level) break;
    best = {low, n + 1 - low, coverage};
  }
  return best;
}

double median(std::span<const double> samples) {
  return median_of_sorted(sorted(samples));
}

std::size_t median_index(std::span<const double> rates) {
  std::vector<std::size_t> order(rates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return rates[i]; });
  return order[(order.size() - 1) / 2];
}

std::optional<u64> percentile_rank(u64 count, double p) {
  constexpr u64 kSamplesAbove = 10;
  if (!(p >= 0 && p <= 100)) throw Error("percentile " + std::to_string(p), "outside 0 to 100");
  if (count == 0) return std::nullopt;
  // In millionths, so that 99.99 % of 100,000 is rank 99,990 and not, by rounding of p / 100, 99,991.
  const auto millionths = static_cast<u64>(std::llround(p * 1e4));
  if (millionths == 1'000'000) return count;
  const auto exact = static_cast<unsigned __int128>(count) * millionths;
  const u64 rank = std::max<u64>(1, static_cast<u64>((exact + 999'999) / 1'000'000));
  return count - rank < kSamplesAbove ? std::nullopt : std::optional(rank);
}

std::optional<double> sample_std(std::span<const double> samples) {
  if (samples.size() < 2) return std::nullopt;
  double mean = 0;
  double squares = 0;
  double n = 0;
  for (const double x : samples) {
    n += 1;
    const double delta = x - mean;
    mean += delta / n;
    squares += delta * (x - mean);
  }
  return std::sqrt(squares / (n - 1));
}

double relative_spread(std::span<const double> samples) {
  if (samples.empty()) return 0;
  const auto [low, high] = std::ranges::minmax(samples);
  if (low == high) return 0;
  const double mid = std::abs(median(samples));
  return mid > 0 ? (high - low) / mid : std::numeric_limits<double>::infinity();
}

std::vector<u64> outliers(std::span<const double> samples) {
  const double mid = median(samples);
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double x : samples) deviations.push_back(std::abs(x - mid));
  // 1.4826 makes the median absolute deviation of a normal distribution its standard deviation.
  const double scaled = 1.4826 * median(deviations);
  const double limit = scaled > 0 ? 3 * scaled : std::abs(mid) / 64;
  std::vector<u64> found;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (deviations[i] > limit) found.push_back(i);
  }
  return found;
}

report::Spread spread_of(std::span<const double> samples) {
  if (samples.empty()) throw Error("spread", "there are no samples");
  for (const double x : samples) {
    if (!std::isfinite(x)) throw Error("spread", "a sample is not a finite number");
  }
  const std::vector<double> s = sorted(samples);
  const MedianRanks ranks = median_ranks(s.size());
  double mean = 0;
  for (std::size_t i = 0; i < s.size(); ++i) mean += (s[i] - mean) / static_cast<double>(i + 1);

  report::Spread out;
  out.median = median_of_sorted(s);
  out.ci_low = s[ranks.low - 1];
  out.ci_high = s[ranks.high - 1];
  out.ci_level = ranks.coverage;
  out.min = s.front();
  out.max = s.back();
  out.mean = mean;
  out.std = sample_std(samples);
  out.noisy = relative_spread(samples) > kNoisy;
  out.outliers = outliers(samples);
  return out;
}

}  // namespace doorbell::measure
