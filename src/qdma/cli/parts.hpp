// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parts of the path's description.
#pragma once

#include <functional>
#include <memory>

#include "cli/path.hpp"
#include "qdma/bench/port.hpp"
#include "qdma/server/card_server.hpp"

namespace doorbell::cli {

Command qdma_command();
/// doorbell card serve.
Command card_command();
/// doorbell run card.
Command run_card_command();
Command qdma_validate_command();
Command qdma_tune_command();
/// For Option::offers: the cards that a bench takes.
std::vector<std::string> card_words();
std::vector<DemoStep> qdma_demo_steps(bool gpu);
FaultCheck check_qdma_fault(model::Fault fault, double times, const measure::RunWatch& watch);

/// Options of a software card that is served to other processes: the card, its faults, what its server gives.
void add_served_card_options(OptionTable& table);
/// Throws Error for a card that cannot be served.
void check_served_card(const Options& options);
/// The server that these options describe.
[[nodiscard]] std::unique_ptr<qdma::CardServer> make_card_server(const Options& options);
/// Writes lines about programs' calls on standard error, and waits for nobody who does not read it.
[[nodiscard]] qdma::SlashNotice slash_notice();

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
