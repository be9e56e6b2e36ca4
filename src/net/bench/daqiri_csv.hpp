// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Results in the columns of daqiri's benchmark runner (runs.csv), for scripts that read those.
#pragma once

#include <string>
#include <vector>

#include "report/result.hpp"

namespace doorbell::net {

/// A row a cell and repeat. `gbps` is the senders' rate, `rx_gbps` the receivers', `drops` what was sent and
/// has not arrived, `drops_kind` the layers that dropped it. What was not measured is empty.
[[nodiscard]] std::string daqiri_csv(const std::vector<report::Cell>& cells);

}  // namespace doorbell::net
