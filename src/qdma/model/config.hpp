// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The configuration of a software card.
#pragma once

#include <string>

#include "model/config.hpp"

namespace doorbell::qdma {

/// `bytes_per_s` is each channel's, in each direction. Rates of 0 are no limit.
struct CardConfig : model::Config {
  double link_bytes_per_s = 0;       ///< of both channels together, in each direction
  double duplex_bytes_per_s = 0;     ///< of both channels and both directions together
  double hbm_read_bytes_per_s = 0;   ///< of each half of HBM, card to host
  double hbm_write_bytes_per_s = 0;  ///< of each half of HBM, host to card
  /// Time passes only as bytes move and as something is waited for, never by itself. Rates and deadlines then
  /// do not depend on the machine.
  bool counted_clock = false;

  /// Bytes a second that a single transfer gets at least: the lowest of the rates that limit it; 0: none
  /// does.
  [[nodiscard]] double lowest_rate() const;
};

/// "model" or "model:KEY=VALUE,...". `card`: what an Error calls the name. Throws Error.
[[nodiscard]] CardConfig parse_card_spec(const std::string& spec, const std::string& card);

}  // namespace doorbell::qdma
