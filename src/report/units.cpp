// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/units.hpp"

#include <algorithm>

namespace doorbell::report {

ColumnUnit rate_unit(bool packets, bool others) {
  if (!packets) return {"kIOPS", 1e3};
  return others ? ColumnUnit{"k ops/s", 1e3} : ColumnUnit{"Mpps", 1e6};
}

ColumnUnit rate_unit(std::span<const Cell> cells) {
  const auto packet = [](const Cell& c) { return c.operation == kPacket; };
  return rate_unit(std::ranges::any_of(cells, packet), !std::ranges::all_of(cells, packet));
}

ColumnUnit bandwidth_unit(bool bits) {
  return bits ? ColumnUnit{"Gb/s", 1e9 / 8} : ColumnUnit{"GB/s", 1e9};
}

}  // namespace doorbell::report
