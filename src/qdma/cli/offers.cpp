// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/offers.hpp"

#include "qdma/cli/parts.hpp"
#include "qdma/driver.hpp"

namespace doorbell::cli {

std::vector<std::string> card_words() {
  std::vector<std::string> words = backend_words(qdma::backends());
  for (const FoundDevice& card : found_devices("qdma"))
    if (const auto& node = card.facts.at("control_node"); node.is_string())
      add_found(&words, "kernel:/dev/" + node.get<std::string>());
  return words;
}

}  // namespace doorbell::cli
