// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How large the queues of a PutQueue are.
#pragma once

#include <doorbell/cxi/cassini.hpp>

namespace doorbell::cxi {

/// Slots of the command queue: room for twice the longest commands that it will hold, because the device
/// reports late what it has read.
[[nodiscard]] u32 slots_for(const PutQueueShape& shape);
/// Bytes of the event queue: every operation may fail.
[[nodiscard]] u64 event_bytes_for(const PutQueueShape& shape);

}  // namespace doorbell::cxi
