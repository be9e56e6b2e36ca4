// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/fault_injector.hpp"

#include <doorbell/pattern.hpp>

#include <cmath>
#include <nlohmann/json.hpp>

namespace doorbell::model {

namespace {

bool applies(Fault f, Direction direction) {
  if (direction == Direction::both) return true;
  if (f == Fault::corrupt || f == Fault::misplace) return direction == Direction::to_host;
  return f != Fault::stale || direction == Direction::to_device;
}

}  // namespace

FaultInjector::FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns)
    : active_(rates.any()), seed_(seed), delay_ns_(delay_ns) {
  for (u32 k = 0; k < kFaultKinds; ++k) {
    const double p = rates.probability[k];
    // 2^64 does not fit into 64 bits: for a probability of 1 the threshold is the largest value, which every
    // draw passes.
    threshold_[k] = p >= 1 ? ~u64{0} : static_cast<u64>(std::ldexp(p, 64));
  }
}

InjectedFault FaultInjector::draw(u64 queue, u64 serial, Direction direction) const {
  const u64 command = serial ^ (queue << 48);
  for (u32 k = 0; k < kFaultKinds; ++k) {
    const auto f = static_cast<Fault>(k);
    if (threshold_[k] == 0 || !applies(f, direction)) continue;
    // Kinds are drawn in turn, and the first one drawn is the only fault.
    if (pattern::mix64(seed_ ^ pattern::mix64(command ^ (u64{k + 1} << 40))) <= threshold_[k])
      return {f, pattern::mix64(~seed_ ^ pattern::mix64(command))};
  }
  return {};
}

nlohmann::ordered_json FaultInjector::json() const {
  auto j = nlohmann::ordered_json::object();
  for (u32 k = 0; k < kFaultKinds; ++k) j[fault_names()[k]] = counted(static_cast<Fault>(k));
  return j;
}

}  // namespace doorbell::model
