// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/single_operation.hpp"

#include <algorithm>
#include <cmath>

namespace doorbell::rma {

nlohmann::ordered_json single_operation(const measure::Histogram& latency, u64 bytes) {
  if (latency.count() == 0) return nullptr;
  const auto n = static_cast<double>(latency.count());
  const double low = *latency.min();
  const double high = *latency.max();
  const double mean = *latency.mean();
  const double std = latency.count() < 2 ? 0 : *latency.std() * std::sqrt((n - 1) / n);
  // Rates are the inverse of each operation's own latency, so their mean is not the inverse of the mean.
  double sum = 0, squares = 0;
  const auto counts = latency.counts();
  for (u32 i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto lower = static_cast<double>(histogram::lower_ns(i));
    // The last bucket has no end of its own.
    const double width =
        i == histogram::kOverflow ? high - lower : static_cast<double>(histogram::width_ns(i) - 1);
    const double middle = lower + width / 2;
    const double rate = 1e9 / std::max(std::clamp(middle, low, high), 1.0);
    sum += rate * static_cast<double>(counts[i]);
    squares += rate * rate * static_cast<double>(counts[i]);
  }
  const double rate = sum / n;
  const double rate_std = std::sqrt(std::max(squares / n - rate * rate, 0.0));
  const double slowest = 1e9 / std::max(high, 1.0);
  const double fastest = 1e9 / std::max(low, 1.0);
  const auto b = static_cast<double>(bytes);
  return {{"count", latency.count()},
          {"latency_ns", {{"min", low}, {"mean", mean}, {"std", std}, {"max", high}}},
          {"ops_per_s", {{"min", slowest}, {"mean", rate}, {"std", rate_std}, {"max", fastest}}},
          {"bytes_per_s",
           {{"min", slowest * b}, {"mean", rate * b}, {"std", rate_std * b}, {"max", fastest * b}}}};
}

}  // namespace doorbell::rma
