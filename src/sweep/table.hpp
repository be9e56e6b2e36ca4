// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A sweep's summary as text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/cells.hpp"
#include "sweep/record.hpp"
#include "sweep/reference.hpp"

namespace doorbell::sweep {

/// The number at "latency_ns.mean": in the cell's metrics, else in the cell itself. Empty if there is none.
[[nodiscard]] std::optional<double> figure_at(const nlohmann::ordered_json& result_cell,
                                              std::string_view path);

/// How a run ended, in few words: "ok", "skipped", "exit 2", "signal 11", "timeout".
[[nodiscard]] std::string verdict_of(const Record& record);

/// One line for each cell (with several rounds, the medians), then a table for each reference. `bits`:
/// payload a second in Gb/s.
[[nodiscard]] std::string summary(const Plan& plan, const std::vector<Cell>& cells,
                                  const std::vector<u32>& selected, const std::vector<Record>& records,
                                  const std::vector<ReferenceTable>& references, bool bits = false);

}  // namespace doorbell::sweep
