// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who has the engine of a NIC.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>
#include <mutex>

namespace doorbell::roce {

/// A lock that most only try. Threads that poll try it again and again: they give way to one that waits,
/// which would starve behind them.
class EngineLock {
 public:
  using Held = std::unique_lock<std::mutex>;

  [[nodiscard]] Held wait() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    Held held(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return held;
  }
  /// Not held if another thread has it, or waits for it.
  [[nodiscard]] Held try_now() {
    if (waiting_.load(std::memory_order_relaxed) != 0) return {};
    return {mutex_, std::try_to_lock};
  }

 private:
  std::mutex mutex_;
  std::atomic<u32> waiting_{0};
};

}  // namespace doorbell::roce
