// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A counting event from its user's side: the doorbell page, and the counts that the device writes back. One
// lane makes each call.
#pragma once

#include <doorbell/cxi/events.hpp>
#include <doorbell/cxi/memory.hpp>

namespace doorbell::cxi {

class Counter {
 public:
  DOORBELL_INLINE explicit Counter(const CounterMemory& memory) : m_(memory) {}
  [[nodiscard]] DOORBELL_INLINE u32 index() const { return m_.index; }
  [[nodiscard]] DOORBELL_INLINE bool readable() const { return m_.writeback != nullptr; }

  // Each store is a release: it comes after everything that this thread wrote before, which the count
  // announces.
  DOORBELL_INLINE void add_success(u64 n) const { store64_release(m_.doorbell + kSuccess, n & kMaxSuccess); }
  DOORBELL_INLINE void add_failure(u64 n) const { store64_release(m_.doorbell + kFailure, n & kMaxFailure); }
  DOORBELL_INLINE void reset_success() const { store64_release(m_.doorbell + kResetSuccess, 0); }
  DOORBELL_INLINE void reset_failure() const { store64_release(m_.doorbell + kResetFailure, 0); }

  /// Call only if readable(). The acquire orders the counts before later loads of the data that they stand
  /// for.
  [[nodiscard]] DOORBELL_INLINE CounterCounts read() const {
    const u64 word = load64_acquire(m_.writeback);
    return unpack<CounterCounts>(&word);
  }

  // Words of the doorbell page.
  static constexpr u32 kSuccess = 0, kFailure = 8, kResetSuccess = 16, kResetFailure = 24;

 private:
  CounterMemory m_;
};

}  // namespace doorbell::cxi
