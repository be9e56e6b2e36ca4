// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Addresses as text.
#pragma once

#include <string>

#include "rdma/roce/carrier.hpp"

namespace doorbell::roce {

/// "127.77.0.1"; `address` in the host's order.
[[nodiscard]] inline std::string dotted(u32 address) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    text += std::to_string(address >> shift & 0xFF) + (shift != 0 ? "." : "");
  return text;
}

/// "127.77.0.1:4791"
[[nodiscard]] inline std::string name_of(Endpoint e) {
  return dotted(e.address) + ":" + std::to_string(e.port);
}

}  // namespace doorbell::roce
