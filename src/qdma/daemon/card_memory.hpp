// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The card's memory as the daemon hands it out: units of 64 MiB, 8 units a region, first fit; a buffer lies
// in one region.
#pragma once

#include <array>
#include <optional>

#include "qdma/daemon/protocol.hpp"

namespace doorbell::qdma::daemon {

inline constexpr u32 kRegionUnits = 8;
inline constexpr u64 kRegionBytes = kRegionUnits * kAllocationUnit;
inline constexpr u32 kRegions = static_cast<u32>(kHbmBytes / kRegionBytes);
static_assert(kHbmBytes == kDdrBytes && kRegions == 64);

/// So many bytes in whole units, as they are handed out.
[[nodiscard]] constexpr u64 whole_units(u64 bytes) {
  return (bytes + kAllocationUnit - 1) / kAllocationUnit * kAllocationUnit;
}

/// A range of the card's addresses.
struct CardRange {
  u64 base = 0;
  u64 bytes = 0;
  [[nodiscard]] bool holds(u64 address, u64 length) const {
    return address >= base && length <= bytes && address - base <= bytes - length;
  }
};

class CardMemory {
 public:
  /// `bytes` rounded up to units, of the type; for hbm in region `argument`. Empty: no room there. The caller
  /// has checked type, argument and bytes (1..kRegionBytes).
  [[nodiscard]] std::optional<CardRange> allocate(AllocationType type, u64 argument, u64 bytes);
  void release(const CardRange& range);
  [[nodiscard]] u64 used() const { return used_; }

 private:
  using Map = std::array<u8, kRegions>;  // a bit a unit
  [[nodiscard]] std::optional<CardRange> allocate_in(Map& map, u64 base, u32 first, u32 last, u32 units);
  Map hbm_{}, ddr_{};
  u64 used_ = 0;
};

}  // namespace doorbell::qdma::daemon
