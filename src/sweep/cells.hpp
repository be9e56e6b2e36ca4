// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Converts a plan to the runs that it asks for.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <string>
#include <vector>

#include "options/option.hpp"
#include "sweep/plan.hpp"

namespace doorbell::sweep {

struct Cell {
  u32 index = 0;                  ///< its place in the plan, from 0
  std::vector<Setting> settings;  ///< the plan's options, then the cell's own
  std::vector<std::string> arguments;
  options::Options options;       ///< resolved
  std::optional<Pair> pair = {};  ///< the two ranks between which it is run
  u32 group = 0;                  ///< consecutive turns of one group may run at the same time
};

/// The number of a cell in texts, tables and pages. Files and options have the index, which counts from 0.
[[nodiscard]] constexpr u32 shown_number(u32 index) {
  return index + 1;
}

/// One run of a cell.
struct Turn {
  u32 cell = 0;
  u32 round = 0;
};

/// The cells of the matrix, whose last option changes fastest, then the listed cells. The command checks each
/// cell. A listed cell's option replaces the plan's. Throws doorbell::Error for a cell that the command
/// refuses, and for two equal cells.
[[nodiscard]] std::vector<Cell> expand(const Plan& plan);

/// The cells of a plan with 'pairs' for these ranks: each cell for each pair, the pairs in the order of
/// tournament(). Without ranks the cells as they are, to be shown. Throws doorbell::Error for an option that
/// an end does not take, and for more runs than kMaxCells.
[[nodiscard]] std::vector<Cell> expand_pairs(const Plan& plan, std::vector<Cell> cells,
                                             const std::vector<std::string>& hosts);

/// The words that the listening end of a cell is started with, without the address.
[[nodiscard]] std::vector<std::string> listening_arguments(const Plan& plan, const Cell& cell);

/// The options in which cells differ: the names of the matrix and of the listed cells, in order; with pairs
/// also kFrom and kTo.
[[nodiscard]] std::vector<std::string> varied(const Plan& plan);

/// The cell's value of an option as the plan writes it, else the option's default; "" if there is none.
[[nodiscard]] std::string value_of(const Cell& cell, const std::string& option);

/// True if two texts are the same value of an option, maybe in different spellings (value_key()).
[[nodiscard]] bool same_value(const options::Option& option, const std::string& a, const std::string& b);

/// "provider=bnxt size=4KiB".
[[nodiscard]] std::string label_of(const Plan& plan, const Cell& cell);

/// Indices of the cells that "KEY=VALUE[,KEY=VALUE...]" selects. A cell must match every key; if a key is
/// given more than once, one of its values. Throws doorbell::Error for an unknown key, a bad value, or if
/// nothing is selected. `setting`: what messages call this text, which may be an option of a command.
[[nodiscard]] std::vector<u32> select(const Plan& plan, const std::vector<Cell>& cells,
                                      const std::string& only, const std::string& setting = "only");

/// All rounds of the selected cells, one after the other. If the plan shuffles, each round has an order of
/// its own.
[[nodiscard]] std::vector<Turn> turns(const Plan& plan, const std::vector<u32>& selected, u64 seed);

/// Puts the turns of each group one after the other, so that a shuffled order is one of groups.
void join_groups(const std::vector<Cell>& cells, std::vector<Turn>* turns);

/// How many turns from `at` on are of one round and group.
[[nodiscard]] std::size_t group_at(const std::vector<Cell>& cells, const std::vector<Turn>& turns,
                                   std::size_t at);

}  // namespace doorbell::sweep
