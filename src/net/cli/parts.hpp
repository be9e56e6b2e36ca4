// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include "cli/path.hpp"

namespace doorbell::cli {

Command net_command();
Command net_link_command();
/// For Option::offers: two interfaces of this machine, and all that --link takes.
std::vector<std::string> interface_pairs();
std::vector<std::string> link_words();
std::vector<DemoStep> net_demo_steps(bool gpu);
FaultCheck check_net_fault(model::Fault fault, double times, const measure::RunWatch& watch);

}  // namespace doorbell::cli
