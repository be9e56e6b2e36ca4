// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The use that a run makes of the device that it opens. A model adapts its configuration to it; hardware
// ignores it.
#pragma once

#include "model/fault.hpp"

namespace doorbell::model {

struct Use {
  bool gpu_memory = true;  ///< the device must reach memory of the GPUs that it is opened with
  /// Other libraries of this process work on those GPUs: no kernel of the model's stays there, behind which
  /// their loading and freeing would wait for ever.
  bool shared_gpu = false;
  u32 queues = 1;             ///< queues or queue pairs that will be used
  u32 initiator_threads = 1;  ///< CPU threads that will drive them; 0 when a GPU does
  FaultRates faults = {};
  u64 seed = 1;
  bool writes = true;           ///< it may change what the device keeps
  bool must_write = true;       ///< and a device that keeps it unchanged is of no use
  u64 late_ns = 1'000'000'000;  ///< a completion later than this counts as late
};

}  // namespace doorbell::model
