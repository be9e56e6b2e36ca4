// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The factor between two sets of independent runs: the Hodges-Lehmann estimate over logarithms, with Yuen's
// interval for trimmed means. The interval holds when one side spreads more than the other, and when one run
// in seven was disturbed.
#pragma once

#include <cstddef>
#include <span>

namespace doorbell::sweep {

/// The level of every interval. The approximation by Student's distribution is up to 1.5 % too bold with few
/// runs; its quantile is taken that much higher, so that the level holds for every ratio of the two spreads.
inline constexpr double kLevel = 0.95;
/// With fewer runs on a side, nothing is concluded.
inline constexpr std::size_t kLeastRuns = 4;
/// The recommended number for a plan: with seven runs a side, one disturbed run does not hide a difference.
inline constexpr std::size_t kGoodRuns = 7;
/// More runs on one side are refused: their pairs would not fit into memory.
inline constexpr std::size_t kMostRuns = 2000;

/// The factor between two sets of positive figures.
struct Factor {
  double median = 1;         ///< of after / before, over all pairs
  double low = 1, high = 1;  ///< the interval; the extremes if `level` is 0
  double level = 0;          ///< the interval's level; 0: too few runs
};
/// Each figure belongs to one run. Both sides need one figure or more, all above 0. `level`: that of the
/// interval, as a share. Throws doorbell::Error beyond kMostRuns.
[[nodiscard]] Factor factor_of(std::span<const double> before, std::span<const double> after,
                               double level = kLevel);

/// t so that a value of Student's distribution lies in [-t, t] with probability `level`. `freedom` is 1 or
/// more.
[[nodiscard]] double student_quantile(double freedom, double level);

}  // namespace doorbell::sweep
