// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A loopback's run as a cell of a Result.
#pragma once

#include "cxi/loopback.hpp"

namespace doorbell::cxi {

/// Everything except the options as they were given. `warnings` receives remarks about the repeats.
[[nodiscard]] report::Cell loopback_cell(const LoopbackOptions& options, u32 service,
                                         const LoopbackResult& result, CassiniDevice& device,
                                         std::vector<std::string>& warnings);

[[nodiscard]] StopReason stop_reason(const LoopbackResult& result);

}  // namespace doorbell::cxi
