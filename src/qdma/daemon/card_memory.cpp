// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/card_memory.hpp"

namespace doorbell::qdma::daemon {

namespace {

u32 units_of(u64 bytes) {
  return static_cast<u32>(whole_units(bytes) / kAllocationUnit);
}

u32 unit_mask(u32 units) {
  return (1u << units) - 1;
}

}  // namespace

std::optional<CardRange> CardMemory::allocate(AllocationType type, u64 argument, u64 bytes) {
  const u32 units = units_of(bytes);
  if (type == AllocationType::ddr) return allocate_in(ddr_, kDdrBase, 0, kRegions, units);
  if (type == AllocationType::hbm_vnoc) return allocate_in(hbm_, kHbmBase, 0, kRegions, units);
  const u32 region = static_cast<u32>(argument);
  return allocate_in(hbm_, kHbmBase, region, region + 1, units);
}

std::optional<CardRange> CardMemory::allocate_in(Map& map, u64 base, u32 first, u32 last, u32 units) {
  const u32 wanted = unit_mask(units);
  for (u32 region = first; region < last; ++region) {
    for (u32 unit = 0; unit + units <= kRegionUnits; ++unit) {
      if ((map[region] & wanted << unit) != 0) continue;
      map[region] = static_cast<u8>(map[region] | wanted << unit);
      used_ += units * kAllocationUnit;
      return CardRange{base + region * kRegionBytes + unit * kAllocationUnit, units * kAllocationUnit};
    }
  }
  return {};
}

void CardMemory::release(const CardRange& range) {
  const bool ddr = range.base >= kDdrBase;
  const u64 offset = range.base - (ddr ? kDdrBase : kHbmBase);
  u8& region = (ddr ? ddr_ : hbm_)[offset / kRegionBytes];
  const u32 unit = static_cast<u32>(offset % kRegionBytes / kAllocationUnit);
  region = static_cast<u8>(region & ~(unit_mask(units_of(range.bytes)) << unit));
  used_ -= range.bytes;
}

}  // namespace doorbell::qdma::daemon
