// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Functions that the demos of all paths with one-sided operations share.
#pragma once

#include "cli/path.hpp"
#include "rma/bench.hpp"

namespace doorbell::cli {

[[nodiscard]] DemoStep rma_demo_step(std::string title, rma::BenchOptions options);

/// Runs `base` with one kind of fault, small batches and short deadlines. Paths differ in how the initiator
/// finds some kinds of faults. `found_itself` is asked first; it returns an empty `found_as` for kinds that
/// all paths find in the same way.
[[nodiscard]] FaultCheck check_rma_fault(rma::BenchOptions base, model::Fault fault, double times,
                                         const measure::RunWatch& watch,
                                         FaultCheck (*found_itself)(model::Fault fault,
                                                                    const report::Cell& cell, u64 injected));

/// Lets a GPU kernel drive four queues, with queues and data in GPU memory.
void run_on_gpu(rma::BenchOptions& options);

}  // namespace doorbell::cli
