// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completions of one queue that wait for their time.
#pragma once

#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// A completion that waits for its time or for older completions.
struct LateCompletion {
  u64 due_ns = 0;
  bool ends_read = false;  ///< of a read or atomic; until then it counts against max_rd_atomic
  bool silent = false;     ///< writes no CQE: it only marks the end of a read
  CqeFields fields;
};

/// In order. Whoever creates the queue pair owns the entries; a NIC that completes everything at once has
/// none.
struct LateRing {
  LateCompletion* entries = nullptr;
  u32 room = 0;
  u32 first = 0;
  u32 count = 0;

  [[nodiscard]] DOORBELL_INLINE bool empty() const { return count == 0; }
  /// True if a request cannot be sure of room: a fault can complete it twice.
  [[nodiscard]] DOORBELL_INLINE bool full() const { return room != 0 && room - count < 2; }
  [[nodiscard]] DOORBELL_INLINE const LateCompletion& front() const { return entries[first]; }
  /// Not full().
  DOORBELL_INLINE void push(const LateCompletion& c) {
    const u32 at = first + count;
    entries[at < room ? at : at - room] = c;
    ++count;
  }
  DOORBELL_INLINE void pop() {
    first = first + 1 == room ? 0 : first + 1;
    --count;
  }
  DOORBELL_INLINE void clear() { first = count = 0; }
};

}  // namespace doorbell::rdma
