// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the wire, injected into the packets that a NIC sends. Which packet has which fault follows from
// the seed, both addresses and the packet's place among those for the same peer.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <string_view>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

inline constexpr std::array<std::string_view, kWireFaults> kWireFaultNames{"drop", "corrupt", "duplicate",
                                                                           "reorder", "delay"};

struct WireFaults {
  /// Of each fault. A packet has one at most, so their sum is 1 at most.
  std::array<double, kWireFaults> probability{};
  u64 delay_ns = 500'000;

  [[nodiscard]] double of(WireFault f) const { return probability[static_cast<std::size_t>(f)]; }
  [[nodiscard]] bool any() const {
    for (const double p : probability)
      if (p > 0) return true;
    return false;
  }
};

/// The fate of the packet with that place (from 0) among those from one NIC to another.
struct WireDraw {
  bool fault = false;
  WireFault kind = WireFault::drop;
  u64 random = 0;  ///< for the fault's own choices
};
[[nodiscard]] WireDraw draw_wire_fault(const WireFaults& faults, u64 seed, Endpoint from, Endpoint to,
                                       u64 place);

}  // namespace doorbell::roce
