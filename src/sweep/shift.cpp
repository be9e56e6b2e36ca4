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

constexpr std::size_t kExactPairs = 10'000;
constexpr double kNormal95 = 1.959963984540054;  // the normal distribution's quantile for 95 %, two-sided

/// P(U <= u) for u = 0.. up to `limit`. U is the number of pairs that are out of order, if all orders of n +
/// m runs are equally likely.
std::vector<double> lower_tail(std::size_t n, std::size_t m, double limit) {
  // The number of orders with U = u is the coefficient of q^u in the Gaussian binomial of n + m over n.
  std::vector<double> orders(n * m + 1, 0);
  orders[0] = 1;
  double all = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t u = n * m; u >= m + i; --u) orders[u] -= orders[u - m - i];
    for (std::size_t u = i; u <= n * m; ++u) orders[u] += orders[u - i];
    all *= static_cast<double>(m + i) / static_cast<double>(i);
  }
  std::vector<double> tail;
  double sum = 0;
  for (const double count : orders) {
    sum += count / all;
    if (sum > limit) break;
    tail.push_back(sum);
  }
  return tail;
}

}  // namespace

std::optional<ShiftRanks> shift_ranks(std::size_t n, std::size_t m, double level) {
  const std::size_t pairs = n * m;
  if (pairs == 0) return std::nullopt;
  if (pairs > kExactPairs) {
    const auto size = static_cast<double>(pairs);
    const double spread = std::sqrt(size * static_cast<double>(n + m + 1) / 12);
    const auto low = static_cast<std::size_t>(std::floor(size / 2 - kNormal95 * spread));
    return ShiftRanks{std::max<std::size_t>(low, 1), pairs + 1 - std::max<std::size_t>(low, 1), kLevel};
  }
  const std::vector<double> tail = lower_tail(n, m, (1 - level) / 2);
  if (tail.empty()) return std::nullopt;
  return ShiftRanks{tail.size(), pairs + 1 - tail.size(), 1 - 2 * tail.back()};
}

Factor factor_of(std::span<const double> before, std::span<const double> after) {
  if (before.size() > kMostRuns || after.size() > kMostRuns)
    throw Error("comparing", fmt::format("a side has more than {} runs of one cell", kMostRuns));
  std::vector<double> factors;
  factors.reserve(before.size() * after.size());
  for (const double a : before)
    for (const double b : after) factors.push_back(std::log(b / a));
  std::ranges::sort(factors);
  Factor f{.median = std::exp(measure::median(factors)),
           .low = std::exp(factors.front()),
           .high = std::exp(factors.back())};
  if (const auto ranks = shift_ranks(before.size(), after.size())) {
    f.low = std::exp(factors[ranks->low - 1]);
    f.high = std::exp(factors[ranks->high - 1]);
    f.level = ranks->coverage;
  }
  return f;
}

}  // namespace doorbell::sweep
