// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Raw frames by DPDK's poll mode drivers.
#pragma once

#include "net/stream.hpp"

namespace doorbell::net {

/// The row of `--engine dpdk[:DRIVER]`. By default the link decides: "ring", "memif" and "null" are devices
/// of DPDK, PCI addresses are its own ports, and interfaces are opened with AF_PACKET.
[[nodiscard]] const StreamKind& dpdk_engine();

}  // namespace doorbell::net
