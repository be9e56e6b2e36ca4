// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include "cli/path.hpp"

namespace doorbell::cli {

Command rdma_command();
Command run_command();
std::vector<DemoStep> rdma_demo_steps(bool gpu);
FaultCheck check_rdma_fault(model::Fault fault, double times, const measure::RunWatch& watch);

}  // namespace doorbell::cli
