// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The work of one cell of a bench of one-sided operations, derived from the options and the payload's size.
#pragma once

#include "rma/bench.hpp"

namespace doorbell::rma {

enum class Part { latency, rate, ping_pong };
[[nodiscard]] const char* name(Part part);

struct CellSetup {
  Part part = Part::rate;
  u32 bytes = 0;
  u32 batch = 1;
  u32 window = 1;
  u32 signal_every = 1;
  u64 count = 0;  ///< operations of each queue in each repeat; ~0 with a duration
  bool inlined = false;
  SessionShape shape;
};

/// OpPhase::target_slots, if the responder posts as many receives as its initiator has operations in flight.
[[nodiscard]] u32 target_slots(Op op, Ends ends, u32 window);

/// Bytes of host memory that a cell takes on `port`: the memory of its session, and the buffers for comparing
/// its rate with copying, if it is compared (measures_ceiling).
[[nodiscard]] u64 memory_needed(const CellSetup& setup, const Port& port);

/// True if the cell's rate is compared with this machine's copy rate. For small blocks the comparison means
/// nothing.
[[nodiscard]] bool measures_ceiling(const CellSetup& setup, const Port& port);

[[nodiscard]] CellSetup set_up_cell(const BenchOptions& options, Part part, u32 bytes);

}  // namespace doorbell::rma
