// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Figures of single operations in the form that vendors publish.
#pragma once

#include <nlohmann/json.hpp>

#include "measure/histogram.hpp"

namespace doorbell::rma {

/// Minimum, mean, population standard deviation and maximum of the latency, and of the throughput and rate
/// that follow from each operation's latency alone. Returns null if there are no operations.
[[nodiscard]] nlohmann::ordered_json single_operation(const measure::Histogram& latency, u64 bytes);

}  // namespace doorbell::rma
