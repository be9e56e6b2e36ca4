// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// CPU threads that drive queue pairs through libibverbs.
#pragma once

#include <memory>
#include <vector>

#include "rdma/device.hpp"
#include "rdma/op_work.hpp"

namespace doorbell::rdma {

/// Both ends of a connection, of a VerbsDevice; `peer` null for one that leads back to itself or away.
struct VerbsEnds {
  QueuePairObject* own = nullptr;
  QueuePairObject* peer = nullptr;
};

[[nodiscard]] std::unique_ptr<OpRunner> make_verbs_runner(const std::vector<VerbsEnds>& ends, u32 threads,
                                                          u32 window);

}  // namespace doorbell::rdma
