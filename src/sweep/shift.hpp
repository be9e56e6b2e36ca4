// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The distance between two sets of independent runs: the Hodges-Lehmann estimate with the exact interval of
// the Mann-Whitney test. It works with few runs, outliers and several modes. It assumes nothing about the
// distribution, but the runs of a side must be independent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace doorbell::sweep {

/// The level that an interval has to reach.
inline constexpr double kLevel = 0.95;
/// With this number of runs on each side, an interval reaches that level.
inline constexpr std::size_t kLeastRuns = 4;
/// The recommended number for a plan: with seven runs a side, one disturbed run does not hide a difference.
inline constexpr std::size_t kGoodRuns = 7;
/// More runs on one side are refused: their pairs would not fit into memory.
inline constexpr std::size_t kMostRuns = 2000;

/// The ranks (from 1) of the two among n * m sorted differences that enclose the shift, and the probability
/// that they do. Empty if n and m are too small for `level`.
struct ShiftRanks {
  std::size_t low = 1;
  std::size_t high = 1;
  double coverage = 0;
};
[[nodiscard]] std::optional<ShiftRanks> shift_ranks(std::size_t n, std::size_t m, double level = kLevel);

/// The factor between two sets of positive figures.
struct Factor {
  double median = 1;         ///< of after / before, over all pairs
  double low = 1, high = 1;  ///< the interval; the extremes if `level` is 0
  double level = 0;          ///< the interval's level; 0: too few runs
};
/// Each figure belongs to one run. Both sides need one figure or more, all above 0. Throws doorbell::Error
/// beyond kMostRuns.
[[nodiscard]] Factor factor_of(std::span<const double> before, std::span<const double> after);

}  // namespace doorbell::sweep
