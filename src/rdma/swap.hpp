// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The lists that two processes with NICs swap before they connect queue pairs. Both call a function of these
// together: each sends its own list and receives one of the same length. They throw doorbell::Error.
#pragma once

#include <vector>

#include "exchange/exchange.hpp"
#include "rdma/nic_device.hpp"
#include "rma/session.hpp"

namespace doorbell::rdma {

/// `doorbell rdma` with --listen and --connect.
inline constexpr exchange::RunKind kRunKind{"rdma", 18515};

[[nodiscard]] std::vector<QueuePairAddress> swap(exchange::Exchange& exchange,
                                                 const std::vector<QueuePairAddress>& mine);
[[nodiscard]] std::vector<MemoryKey> swap(exchange::Exchange& exchange, const std::vector<MemoryKey>& mine);

}  // namespace doorbell::rdma
