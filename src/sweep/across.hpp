// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Pairs the cells of two measurements that differ on purpose.
#pragma once

#include <string>
#include <vector>

#include "sweep/samples.hpp"

namespace doorbell::sweep {

/// Takes the options `names` out of what identifies a cell, on both sides, so that cells meet although these
/// options differ. Parameters that follow from an option ("in_flight" from "batch-size") are taken out too:
/// those with one value on each side, where no other option that was given differs. They become facts, which
/// compare() lists. Throws doorbell::Error if no cell has such an option, or if cells of one side then are
/// the same. `setting`: what messages call these names, which may be an option of a command.
void pair_across(const std::vector<std::string>& names, Measured* before, Measured* after,
                 const std::string& setting = "across");

/// Takes how long was measured (durations, repeats, counts of operations) out of what identifies a cell,
/// where each side has one value of it and the two differ: more of the same work is the same cell. A count of
/// 0 is other work. What is taken out becomes a fact, which compare() lists.
void pair_lengths(Measured* before, Measured* after);

/// Takes out of what identifies a cell all that differs, where the two sides have equally many cells and not
/// the same: the first cell of one then meets the first of the other, and so on. For two settings of one
/// command.
void pair_by_place(Measured* before, Measured* after);

/// The options on the command lines of which the sides have different values, without those of
/// pair_lengths().
[[nodiscard]] std::vector<std::string> differing_options(const Measured& before, const Measured& after);

}  // namespace doorbell::sweep
