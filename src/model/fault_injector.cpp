// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/fault_injector.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace doorbell::model {

FaultInjector::FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns)
    : none_{.seed = seed, .delay_ns = delay_ns} {
  set(rates);
}

void FaultInjector::set(const FaultRates& rates) {
  FaultDraw next = none_;
  for (u32 k = 0; k < kFaultKinds; ++k) {
    const double p = rates.probability[k];
    // 2^64 does not fit into 64 bits: for a probability of 1 the threshold is the largest value, which every
    // draw passes.
    next.threshold[k] = p >= 1 ? ~u64{0} : static_cast<u64>(std::ldexp(p, 64));
  }
  rules_.push_back(next);
  rule_.store(rates.any() ? &rules_.back() : nullptr, std::memory_order_release);
}

nlohmann::ordered_json FaultInjector::json() const {
  auto j = nlohmann::ordered_json::object();
  for (u32 k = 0; k < kFaultKinds; ++k) j[fault_names()[k]] = counted(static_cast<Fault>(k));
  return j;
}

}  // namespace doorbell::model
