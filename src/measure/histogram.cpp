// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/histogram.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace doorbell::measure {

namespace {

constexpr u64 kSamplesAbove = 10;  // fewer than this above a percentile: it is not reported

// The middle of the integers that share bucket i; `max` closes the last bucket, which has no upper end.
double midpoint_ns(u32 i, u64 max) {
  const auto lower = static_cast<double>(histogram::lower_ns(i));
  const double upper = i == histogram::kOverflow ? static_cast<double>(max)
                                                 : lower + static_cast<double>(histogram::width_ns(i) - 1);
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
  if (!(p >= 0 && p <= 100)) throw Error("percentile " + std::to_string(p), "outside 0 to 100");
  if (count_ == 0) return std::nullopt;
  // In millionths, so that 99.99 % of 100,000 is rank 99,990 and not, by rounding of p / 100, 99,991.
  const auto millionths = static_cast<u64>(std::llround(p * 1e4));
  if (millionths == 1'000'000) return static_cast<double>(max_);
  const Wide exact = static_cast<Wide>(count_) * millionths;
  const u64 rank = std::max<u64>(1, static_cast<u64>((exact + 999'999) / 1'000'000));
  if (count_ - rank < kSamplesAbove) return std::nullopt;
  u64 cumulative = 0;
  u32 i = 0;
  while ((cumulative += counts_[i]) < rank) ++i;
  return std::clamp(midpoint_ns(i, max_), static_cast<double>(min_), static_cast<double>(max_));
}

report::Latency Histogram::to_latency() const {
  report::Latency out;
  out.count = count_;
  out.min = min();
  out.mean = mean();
  out.std = std();
  out.p50 = percentile(50);
  out.p90 = percentile(90);
  out.p95 = percentile(95);
  out.p99 = percentile(99);
  out.p99_9 = percentile(99.9);
  out.p99_99 = percentile(99.99);
  out.max = max();
  for (u32 i = 0; i < counts_.size(); ++i) {
    if (counts_[i] != 0) out.bins.emplace_back(histogram::lower_ns(i), counts_[i]);
  }
  return out;
}

}  // namespace doorbell::measure
