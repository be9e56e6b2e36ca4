// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How far two sets of independent runs lie apart: Hodges and Lehmann's estimate with the exact interval of
// Mann and Whitney's test. Few runs, outliers, more than one mode: nothing is assumed about their
// distribution but that the runs of a side are independent.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace doorbell::sweep {

/// The level that an interval has to reach.
inline constexpr double kLevel = 0.95;
/// With as many runs on each side an interval reaches it.
inline constexpr std::size_t kLeastRuns = 4;
/// What to ask a plan for: with seven a side, one run that something disturbed does not hide a difference.
inline constexpr std::size_t kGoodRuns = 7;
/// More runs than that on one side are refused: the pairs of all would not fit into memory.
inline constexpr std::size_t kMostRuns = 2000;

/// Ranks (from 1) of the two among n * m sorted differences that enclose the shift, and the probability that
/// they do. Empty when n and m are too few for `level`.
struct ShiftRanks {
  std::size_t low = 1;
  std::size_t high = 1;
  double coverage = 0;
};
[[nodiscard]] std::optional<ShiftRanks> shift_ranks(std::size_t n, std::size_t m, double level = kLevel);

/// The factor between two sets of positive figures.
struct Factor {
  double median = 1;         ///< of after / before, over all pairs
  double low = 1, high = 1;  ///< its interval; the extremes when `level` is 0
  double level = 0;          ///< what the interval is worth; 0: too few runs
};
/// Each figure is one run's. Both sides need one or more; all are above 0. Throws doorbell::Error beyond
/// kMostRuns.
[[nodiscard]] Factor factor_of(std::span<const double> before, std::span<const double> after);

}  // namespace doorbell::sweep
