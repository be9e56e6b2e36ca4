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

/// How many operations took longer than the latency buckets reach: all are in the last one.
[[nodiscard]] u64 beyond_range(const Latency& latency);
/// "60 of 17.2 s or more, where the buckets end: ..."; "" without any.
[[nodiscard]] std::string beyond_range_text(const Latency& latency);

}  // namespace doorbell::report
