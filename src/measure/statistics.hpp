// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Statistics over the repeats of a cell: few samples, no assumption about their distribution, none dropped.
#pragma once

#include <doorbell/config.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "report/result.hpp"

namespace doorbell::measure {

/// Ranks (from 1) of the two order statistics that enclose the median, and the exact probability that they
/// do. The pair is the narrowest symmetric one that reaches `level`; where none does (fewer than six samples
/// for 0.95) it is (1, n), and `coverage` says what that is worth. n must not be 0.
struct MedianRanks {
  std::size_t low = 1;
  std::size_t high = 1;
  double coverage = 0;
};
[[nodiscard]] MedianRanks median_ranks(std::size_t n, double level = 0.95);

/// The middle sample, or the mean of the middle two. NaN for no samples.
[[nodiscard]] double median(std::span<const double> samples);

/// The place of the median repeat, of several the first; of an even number the lower one. `rates` must not be
/// empty.
[[nodiscard]] std::size_t median_index(std::span<const double> rates);

/// The rank (from 1) of the p-th percentile of `count` samples, 0 <= p <= 100 in steps of 0.0001: ceil(p/100
/// * count). Empty when fewer than 10 samples lie above it, because then the figure is an accident of a few
/// samples, and for no samples; p = 100 is the last. Throws doorbell::Error for another p.
[[nodiscard]] std::optional<u64> percentile_rank(u64 count, double p);

/// Standard deviation with n - 1 (Welford); empty below two samples.
[[nodiscard]] std::optional<double> sample_std(std::span<const double> samples);

/// (max - min) / |median|; 0 when all samples are equal, infinite when they differ around a median of 0.
[[nodiscard]] double relative_spread(std::span<const double> samples);

/// A cell whose relative spread is above this is `noisy`.
inline constexpr double kNoisy = 0.05;

/// Indices of the samples further than 3 scaled median absolute deviations from the median. When more than
/// half of the samples are equal the deviation is 0 and says nothing about scale: then 1/64 of the median,
/// one latency bucket, is the limit.
[[nodiscard]] std::vector<u64> outliers(std::span<const double> samples);

/// Everything above in one record. Throws doorbell::Error for no samples or one that is not finite.
[[nodiscard]] report::Spread spread_of(std::span<const double> samples);

}  // namespace doorbell::measure
