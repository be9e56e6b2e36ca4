// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include "cli/path.hpp"

namespace doorbell::cli {

Command cxi_command();
Command run_cxi_command();
/// HPE's tool cxi_gpu_loopback_bw.
Program cxi_gpu_loopback_bw();
std::vector<DemoStep> cxi_demo_steps(bool gpu);
FaultCheck check_cxi_fault(model::Fault fault, double times, const measure::RunWatch& watch);

}  // namespace doorbell::cli
