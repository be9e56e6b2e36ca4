// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The time of a software card.
#pragma once

#include <atomic>

#include "system/clock.hpp"

namespace doorbell::qdma {

class CardClock {
 public:
  /// `counted`: only advance() lets time pass. Else it is CLOCK_MONOTONIC.
  explicit CardClock(bool counted) : counted_(counted) {}

  [[nodiscard]] bool counted() const { return counted_; }
  /// In ns. Any thread.
  [[nodiscard]] u64 now() const { return counted_ ? now_ns_.load(std::memory_order_relaxed) : wall_ns(); }
  void advance(u64 to_ns) { now_ns_.store(to_ns, std::memory_order_relaxed); }

 private:
  bool counted_;
  std::atomic<u64> now_ns_{1};
};

}  // namespace doorbell::qdma
