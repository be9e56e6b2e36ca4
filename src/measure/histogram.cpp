// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/histogram.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include "measure/percentiles.hpp"
#include "measure/statistics.hpp"

namespace doorbell::measure {

namespace {

// The middle of the integers that share bucket i. The last bucket has no upper end: `min` and `max` close it,
// and where they are so far apart that its middle may be off by more than 1/128 there is no figure.
std::optional<double> midpoint_ns(u32 i, u64 min, u64 max) {
  auto lower = static_cast<double>(histogram::lower_ns(i));
  double upper = lower + static_cast<double>(histogram::width_ns(i) - 1);
  if (i == histogram::kOverflow) {
    lower = std::max(lower, static_cast<double>(min));
    upper = static_cast<double>(max);
    if (upper - lower > lower / 64) return std::nullopt;
  }
  return lower + (upper - lower) / 2;
}

}  // namespace

void Histogram::merge(std::span<const u64> counts, u64 min, u64 max, u64 sum, double sum_sq) {
  if (counts.size() != counts_.size()) {
    throw Error("latency histogram", "merging " + std::to_string(counts.size()) + " buckets into " +
                                         std::to_string(counts_.size()));
  }
  u64 total = 0;
  u32 lowest = histogram::kBuckets;
  u32 highest = 0;
  for (u32 i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    total += counts[i];
    lowest = std::min(lowest, i);
    highest = i;
  }
  if (total == 0) return;
  if (min > max || histogram::bucket_of(min) != lowest || histogram::bucket_of(max) != highest) {
    throw Error("latency histogram", "the minimum and maximum do not belong to the counted buckets");
  }
  if (!(sum_sq >= 0) || !std::isfinite(sum_sq)) {
    throw Error("latency histogram", "the sum of squares is not a number");
  }
  for (u32 i = 0; i < counts.size(); ++i) counts_[i] += counts[i];
  count_ += total;
  sum_ += sum;
  sum_sq_ += static_cast<Wide>(std::min(sum_sq, 0x1p126));
  min_ = std::min(min_, min);
  max_ = std::max(max_, max);
}

void Histogram::merge(const Histogram& other) {
  for (u32 i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  sum_sq_ += other.sum_sq_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

void Histogram::clear() {
  *this = Histogram();
}

std::optional<double> Histogram::min() const {
  if (count_ == 0) return std::nullopt;
  return static_cast<double>(min_);
}

std::optional<double> Histogram::max() const {
  if (count_ == 0) return std::nullopt;
  return static_cast<double>(max_);
}

std::optional<double> Histogram::mean() const {
  if (count_ == 0) return std::nullopt;
  return static_cast<double>(sum_) / static_cast<double>(count_);
}

std::optional<double> Histogram::std() const {
  if (count_ < 2) return std::nullopt;
  // sum_sq - sum^2 / n, with the division split so that the subtraction of the two large terms is exact.
  const Wide n = count_;
  const Wide quotient = static_cast<Wide>(sum_) / n;
  const Wide remainder = static_cast<Wide>(sum_) % n;
  const Wide whole = quotient * sum_;  // sum^2 / n = quotient * sum + remainder * sum / n
  const Wide rest = remainder * sum_ / n;
  const Wide square = whole + rest;
  // A merged sum of squares is a rounded double and may fall short by its last bit.
  const double squares = sum_sq_ > square ? static_cast<double>(sum_sq_ - square) : 0.0;
  return std::sqrt(squares / static_cast<double>(count_ - 1));
}

std::optional<double> Histogram::percentile(double p) const {
  const std::optional<u64> rank = percentile_rank(count_, p);
  if (!rank || *rank == count_) return rank ? max() : std::nullopt;
  u64 cumulative = 0;
  u32 i = 0;
  while ((cumulative += counts_[i]) < *rank) ++i;
  const std::optional<double> middle = midpoint_ns(i, min_, max_);
  if (!middle) return std::nullopt;
  return std::clamp(*middle, static_cast<double>(min_), static_cast<double>(max_));
}

report::Latency Histogram::to_latency() const {
  report::Latency out;
  out.count = count_;
  out.min = min();
  out.mean = mean();
  out.std = std();
  fill_percentiles(out, [&](double p) { return percentile(p); });
  out.max = max();
  for (u32 i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) out.bins.emplace_back(histogram::lower_ns(i), counts_[i]);
  }
  return out;
}

}  // namespace doorbell::measure
