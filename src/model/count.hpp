// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A number that a device thread increments and any thread may read.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::model {

/// One thread writes it. A thread that reads a count also sees all that the writer did before it counted.
/// Not so in a kernel, whose counts are read when it is paused.
class Count {
 public:
  DOORBELL_INLINE void operator+=(u64 n) {
#if defined(DOORBELL_ON_GPU)
    n_ += n;
#else
    store64_release(&n_, load64_relaxed(&n_) + n);
#endif
  }
  [[nodiscard]] DOORBELL_INLINE u64 value() const {
    return load64_acquire(&n_);
  }

 private:
  u64 n_ = 0;
};

}  // namespace doorbell::model
