// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parameter block of the I/O kernels: one source for the host that fills it and the kernel.
#pragma once

#include <doorbell/nvme/io_types.hpp>

namespace doorbell::nvme {

/// Pointers are GPU addresses of memory that the host reaches too, one element a queue each.
struct GpuJob {
  IoPhase phase;
  const IoQueue* queues = nullptr;
  QueuePairState* states = nullptr;
  u32* slots = nullptr;  ///< phase.window words a queue: slot states between phases
  IoStats* stats = nullptr;
  u64* bins = nullptr;  ///< histogram::kBuckets counters a queue
};

}  // namespace doorbell::nvme
