// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of a card's settings in messages of back ends.
#pragma once

#include <string>

namespace doorbell::qdma {

/// These words, or the options of a command.
struct CardNames {
  std::string card = "card";
  std::string fault = "fault";
  std::string starting_offset = "first place";
  std::string transfers = "transfers in flight";  ///< how many there are, and of what size
};

}  // namespace doorbell::qdma
