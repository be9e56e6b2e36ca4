// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Counters of any path that a reader must not overlook.
#pragma once

#include <string>
#include <vector>

#include "report/result.hpp"

namespace doorbell::report {

/// The counters in a cell's own sub-objects that are not 0 and that by their names count faults, errors or
/// losses: "model dma_faults 3". All members of an object that is called "injected", "drops" or
/// "completion_statuses" belong to them.
[[nodiscard]] std::vector<std::string> notable_counters(const nlohmann::ordered_json& extra);

}  // namespace doorbell::report
