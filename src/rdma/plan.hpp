// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What one cell of an RDMA bench does, derived from the options and the payload's size.
#pragma once

#include "rdma/bench.hpp"

namespace doorbell::rdma {

enum class Part { latency, rate, ping_pong };
[[nodiscard]] const char* name(Part part);

struct CellPlan {
  Part part = Part::rate;
  u32 bytes = 0;
  u32 batch = 1;
  u32 window = 1;
  u32 signal_every = 1;
  u64 count = 0;  ///< operations of each queue pair in each repeat; ~0 with a duration
  bool inlined = false;
  SessionShape shape;
};

/// OpPhase::landing for a responder that posts as many receives as its initiator has operations in flight.
[[nodiscard]] u32 landing_slots(Op op, Ends ends, u32 window);

/// Bytes of host memory that a cell takes on `device`: its session's, and where the rate is compared with
/// copying (measures_ceiling), the buffers of that too.
[[nodiscard]] u64 memory_needed(const CellPlan& plan, const Device& device);

/// Whether a cell's rate is compared with what this machine copies. Small blocks say nothing of that.
[[nodiscard]] bool measures_ceiling(const CellPlan& plan, const Device& device);

[[nodiscard]] CellPlan plan_cell(const BenchOptions& options, Part part, u32 bytes);

}  // namespace doorbell::rdma
