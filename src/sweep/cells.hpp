// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// From a plan to the runs that it asks for.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

#include "options/option.hpp"
#include "sweep/plan.hpp"

namespace doorbell::sweep {

struct Cell {
  u32 index = 0;
  std::vector<Setting> settings;  ///< the plan's options and then the cell's own
  std::vector<std::string> arguments;
  options::Options options;  ///< resolved
};

/// One run of a cell.
struct Turn {
  u32 cell = 0;
  u32 round = 0;
};

/// The matrix, its last option fastest, and then the listed cells; each checked by the command itself. A
/// listed cell's option stands in for the plan's. Throws doorbell::Error for one that the command refuses and
/// for two that are the same.
[[nodiscard]] std::vector<Cell> expand(const Plan& plan);

/// What tells cells apart: the names of the matrix and of the listed cells, in order.
[[nodiscard]] std::vector<std::string> varied(const Plan& plan);

/// The cell's value of an option, as the plan writes it, else its default; "" without one.
[[nodiscard]] std::string value_of(const Cell& cell, const std::string& option);

/// Two texts are the same value of an option, however they are written: "1KiB" and "1024". What the option
/// takes as plain text is the same, too, when both are sizes. False for a text that is no value of it.
[[nodiscard]] bool same_value(const options::Option& option, const std::string& a, const std::string& b);

/// "provider=bnxt size=4KiB".
[[nodiscard]] std::string label_of(const Plan& plan, const Cell& cell);

/// Indices of the cells that "KEY=VALUE[,KEY=VALUE...]" selects: any value of a key that is given more than
/// once, and every key. Throws doorbell::Error for an unknown key, a bad value, or when nothing is selected.
[[nodiscard]] std::vector<u32> select(const Plan& plan, const std::vector<Cell>& cells,
                                      const std::string& only);

/// Every round of the selected cells, round by round; each round in an order of its own when the plan
/// shuffles.
[[nodiscard]] std::vector<Turn> turns(const Plan& plan, const std::vector<u32>& selected, u64 seed);

}  // namespace doorbell::sweep
