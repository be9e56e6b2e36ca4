// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A latency population: the buckets of loop/histogram.hpp and exact count, min, max, sum and sum of
// squares.
#pragma once

#include <doorbell/config.hpp>

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "loop/histogram.hpp"
#include "report/result.hpp"

namespace doorbell::measure {

/// Owned by one thread; threads and GPU blocks each fill their own and are merged afterwards.
/// record() neither allocates nor locks. Memory: 14.5 KiB, allocated by the constructor.
class Histogram {
 public:
  Histogram() : counts_(histogram::kBuckets) {}

  void record(u64 ns) {
    ++counts_[histogram::bucket_of(ns)];
    ++count_;
    sum_ += ns;
    sum_sq_ += static_cast<Wide>(ns) * ns;
    if (ns < min_) min_ = ns;
    if (ns > max_) max_ = ns;
  }

  /// Adds what another party counted into the same buckets (a GPU block, a process). `counts` holds
  /// kBuckets counters; min and max are ignored when all of them are 0. Throws doorbell::Error when the
  /// figures contradict each other (another length, min above max, a bucket outside [min, max]).
  void merge(std::span<const u64> counts, u64 min, u64 max, u64 sum, double sum_sq);
  void merge(const Histogram& other);
  void clear();

  [[nodiscard]] u64 count() const { return count_; }
  [[nodiscard]] std::span<const u64> counts() const { return counts_; }
  [[nodiscard]] std::optional<double> min() const;
  [[nodiscard]] std::optional<double> max() const;
  [[nodiscard]] std::optional<double> mean() const;
  /// Sample standard deviation (n - 1); empty below two samples.
  [[nodiscard]] std::optional<double> std() const;

  /// The p-th percentile in ns, 0 <= p <= 100 in steps of 0.0001: the midpoint of the bucket that holds the
  /// sample of rank ceil(p/100 * count), clamped to [min, max]. p = 100 is the exact maximum. Empty when
  /// fewer than 10 samples lie above that rank, because then the figure is an accident of a few samples, and
  /// when the sample is one of those that share the last bucket, unless min and max confine them to 1/64.
  [[nodiscard]] std::optional<double> percentile(double p) const;

  [[nodiscard]] report::Latency to_latency() const;

 private:
  // 128 bits: the square of a second in ns is 10^18, and eighteen of those fill 64 bits.
  using Wide = unsigned __int128;

  std::vector<u64> counts_;
  u64 count_ = 0;
  u64 sum_ = 0;
  Wide sum_sq_ = 0;
  u64 min_ = std::numeric_limits<u64>::max();
  u64 max_ = 0;
};

}  // namespace doorbell::measure
