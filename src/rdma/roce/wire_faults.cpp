// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/wire_faults.hpp"

#include "rdma/roce/random_bits.hpp"

namespace doorbell::roce {

WireDraw draw_wire_fault(const WireFaults& faults, u64 seed, Endpoint from, Endpoint to, u64 place) {
  u64 state = mixed(seed);
  state = mixed(state ^ (u64{from.address} << 16 | from.port));
  state = mixed(state ^ (u64{to.address} << 16 | to.port));
  state = mixed(state ^ place);
  double left = fraction(state);
  for (std::size_t i = 0; i < kWireFaults; ++i) {
    if (left < faults.probability[i])
      return {.fault = true, .kind = static_cast<WireFault>(i), .random = mixed(state)};
    left -= faults.probability[i];
  }
  return {};
}

}  // namespace doorbell::roce
