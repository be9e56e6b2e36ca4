// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include <functional>

#include "cli/path.hpp"
#include "qdma/bench/port.hpp"

namespace doorbell::cli {

Command qdma_command();
/// doorbell card serve.
Command card_command();
Command qdma_validate_command();
Command qdma_tune_command();
/// For Option::offers: the cards that a bench takes.
std::vector<std::string> card_words();
std::vector<DemoStep> qdma_demo_steps(bool gpu);
FaultCheck check_qdma_fault(model::Fault fault, double times, const measure::RunWatch& watch);

/// Options that name a card and the way to its memory.
void add_card_option(OptionTable& table);
/// Raw access to the memory of a card that doorbelld shares.
void add_access_options(OptionTable& table);
[[nodiscard]] Option memory_option(std::string help);
[[nodiscard]] Option direction_option();
void add_ring_option(OptionTable& table, const std::string& default_text);
void add_policy_options(OptionTable& table);
/// The number of a size option that counts whole granules. Throws Error.
[[nodiscard]] std::function<u64(u64)> granules(const std::string& option);

}  // namespace doorbell::cli
