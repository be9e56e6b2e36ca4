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

}  // namespace doorbell::sweep
