// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/fault.hpp"

#include <algorithm>
#include <cmath>

namespace doorbell::model {

const std::vector<std::string>& fault_names() {
  static const std::vector<std::string> names = {"drop",  "delay",     "error",   "corrupt", "misplace",
                                                 "stale", "duplicate", "reorder", "removal"};
  return names;
}

std::string_view name(Fault f) {
  if (f == Fault::none) return "none";
  return fault_names()[static_cast<u32>(f)];
}

bool FaultRates::any() const {
  return std::any_of(probability.begin(), probability.end(), [](double p) { return p > 0; });
}

FaultInjector::FaultInjector(const FaultRates& rates, u64 seed) : active_(rates.any()), seed_(seed) {
  for (u32 k = 0; k < kFaultKinds; ++k) {
    const double p = rates.probability[k];
    // 2^64 does not fit: a probability of 1 is the largest threshold, which every draw passes.
    threshold_[k] = p >= 1 ? ~u64{0} : static_cast<u64>(std::ldexp(p, 64));
  }
}

Fault FaultInjector::draw(u64 queue, u64 serial, Direction direction) const {
  for (u32 k = 0; k < kFaultKinds; ++k) {
    if (threshold_[k] == 0) continue;
    const auto f = static_cast<Fault>(k);
    const bool both = direction == Direction::both;
    if ((f == Fault::corrupt || f == Fault::misplace) && direction != Direction::to_host && !both) continue;
    if (f == Fault::stale && direction != Direction::to_device && !both) continue;
    const u64 draw = pattern::mix64(seed_ ^ pattern::mix64(serial ^ (queue << 48) ^ (u64{k + 1} << 40)));
    if (draw <= threshold_[k]) return f;
  }
  return Fault::none;
}

u64 FaultInjector::choose(u64 queue, u64 serial, u64 bound) const {
  return pattern::mix64(~seed_ ^ pattern::mix64(serial ^ (queue << 48))) % bound;
}

}  // namespace doorbell::model
