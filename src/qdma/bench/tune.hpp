// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell qdma tune`: from which size on a transfer is faster if both channels carry it.
#pragma once

#include <string>

#include "qdma/bench/port.hpp"

namespace doorbell::qdma {

struct TuneOptions : measure::RunOptions {
  std::string device = "model";
  CardUse card = {};
  Direction direction = Direction::host_to_card;
  u64 smallest = 8 << 10;  ///< both powers of two, smallest at least two granules
  u64 largest = 4 << 20;
  u64 iterations = 0;  ///< calls of each way in each repeat; 0: chosen from the size
  /// Names of settings in messages: these words, or the options of a command.
};

/// Throws Error for options that cannot go together.
void check(const TuneOptions& options);

/// Calls of each way in a repeat by count.
[[nodiscard]] u64 calls_of_a_repeat(const TuneOptions& options, u64 bytes);
/// About, of a repeat of a way by count, its checks left out, as a mean of all sizes; 0: not known.
[[nodiscard]] double repeat_seconds(const TuneOptions& options);

/// For each size two cells, whole and split, measured in turns. The last cell says the break-even size: the
/// smallest one from which on splitting is faster at every size measured, by the whole interval of the
/// median. Where intervals are below 95 % (fewer than six repeats) it says that it is unknown.
[[nodiscard]] measure::BenchResult tune(const TuneOptions& options, const measure::RunWatch& watch);

/// The cells as a table, and the break-even size as the value of the setting of this name.
[[nodiscard]] std::string tune_text(const report::Result& result,
                                    const std::string& smallest_split = "smallest split");

}  // namespace doorbell::qdma
