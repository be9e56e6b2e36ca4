// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include "cli/path.hpp"

namespace doorbell::cli {

Command nvme_command();
Command bind_command();
Command unbind_command();
Command serve_command();
Command serve_status_command();
Command serve_fault_command();
/// For Option::offers: what bind takes, and what a bench of NVMe does.
std::vector<std::string> controller_addresses();
std::vector<std::string> controller_words();
std::vector<DemoStep> nvme_demo_steps(bool gpu);
FaultCheck check_nvme_fault(model::Fault fault, double times, const measure::RunWatch& watch);

}  // namespace doorbell::cli
