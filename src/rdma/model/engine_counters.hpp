// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An engine's counters.
#pragma once

#include "model/count.hpp"

namespace doorbell::rdma {

struct EngineCounters {
  static constexpr u32 kOps = 7;
  model::Count requests[kOps];
  model::Count bytes, packets, retransmissions, rnr_naks, rnr_wait_ns, error_completions, cq_overflows,
      doorbells, invalid_doorbell_values;
  model::Count in_bursts;  ///< requests that several lanes executed together
};

}  // namespace doorbell::rdma
