// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A device's counts of its I/O commands.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::nvme {

struct IoTotals {
  u64 reads = 0, writes = 0, others = 0, read_bytes = 0, written_bytes = 0, errors = 0, cq_full = 0,
      dma_faults = 0;
  [[nodiscard]] u64 bytes() const { return read_bytes + written_bytes; }

  /// Calls each(a, b) for each number of `a` and the same one of `b`.
  template <class A, class B, class Each>
  DOORBELL_INLINE static void in_pairs(A& a, B& b, Each each) {
    each(a.reads, b.reads);
    each(a.writes, b.writes);
    each(a.others, b.others);
    each(a.read_bytes, b.read_bytes);
    each(a.written_bytes, b.written_bytes);
    each(a.errors, b.errors);
    each(a.cq_full, b.cq_full);
    each(a.dma_faults, b.dma_faults);
  }
  void operator+=(const IoTotals& other) {
    in_pairs(*this, other, [](u64& to, u64 from) { to += from; });
  }
};

}  // namespace doorbell::nvme
