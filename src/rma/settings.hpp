// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Settings of benches of one-sided operations.
#pragma once

#include "measure/settings.hpp"
#include "options/setting.hpp"

namespace doorbell::rma::setting {

using doorbell::measure::setting::infinite;
using doorbell::measure::setting::initiator;
using doorbell::measure::setting::verify;

inline constexpr Setting measure{"what is measured", "measure"};
inline constexpr Setting op{"operation", "op"};
inline constexpr Setting size{"size", "size"};
inline constexpr Setting batch{"batch", "batch-size"};
inline constexpr Setting in_flight{"operations in flight", "in-flight"};
inline constexpr Setting signal_every{"requests a completion", "signal-every"};
inline constexpr Setting inline_below{"inlined bytes", "inline"};
inline constexpr Setting offsets{"offsets", "offsets"};
inline constexpr Setting queues{"queues", "num-queues"};
inline constexpr Setting queue_memory{"queue memory", "queue-mem"};
inline constexpr Setting local_memory{"data memory", "data-mem"};
inline constexpr Setting remote_memory{"target memory", "target-mem"};

}  // namespace doorbell::rma::setting
