// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/fault.hpp"

#include <algorithm>

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

}  // namespace doorbell::model
