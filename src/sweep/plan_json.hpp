// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The facts of a sweep's plan that a report needs, as JSON that can be read without the option tables.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "sweep/reference.hpp"

namespace doorbell::sweep {

/// Schema "doorbell.plan/1": name, title, source and command; and of each published table the rows that fit
/// cells, by the cell's index. `ours_scale` converts the figure at `ours` to the table's unit.
[[nodiscard]] nlohmann::ordered_json to_json(const Plan& plan, const std::vector<ReferenceTable>& tables);

}  // namespace doorbell::sweep
