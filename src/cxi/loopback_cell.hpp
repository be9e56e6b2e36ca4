// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A loopback's run as a cell of a Result.
#pragma once

#include "cxi/loopback.hpp"

namespace doorbell::cxi {

/// Everything but the options as they were given. `warnings` takes what is to be said of the repeats.
[[nodiscard]] report::Cell loopback_cell(const LoopbackOptions& options, u32 service,
                                         const LoopbackResult& result, Cassini& device,
                                         std::vector<std::string>& warnings);

/// "done", or what ended the run.
[[nodiscard]] std::string stop_reason(const LoopbackResult& result);

/// The repeat of the median rate; null without any.
[[nodiscard]] const LoopbackPart* median_part(const LoopbackResult& result);

}  // namespace doorbell::cxi
