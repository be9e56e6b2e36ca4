// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which change of a queue pair's state is allowed, and which attributes each needs and may have.
#pragma once

#include "rdma/roce/nic.hpp"

namespace doorbell::roce {

/// Source: InfiniBand Architecture Specification, volume 1, 10.3.1 and 11.2.5.3. `bits` is ibv_qp_attr_mask.
[[nodiscard]] bool may_change(Service service, Half half, State from, State to, u32 bits);

}  // namespace doorbell::roce
