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

  /// The engine of somebody who waited for it. Who only tried meanwhile has left his work undone: it is done
  /// at the release.
  class Waited {
   public:
    Waited(EngineLock& lock, std::unique_lock<std::mutex> held) : lock_(&lock), held_(std::move(held)) {}
    ~Waited() {
      held_.unlock();
      if (lock_->released_ != nullptr) lock_->released_(lock_->owner_);
    }
    Waited(const Waited&) = delete;
    Waited& operator=(const Waited&) = delete;

   private:
    EngineLock* lock_;
    std::unique_lock<std::mutex> held_;
  };

  /// `released` is called with `owner` after each Waited, without the engine.
  void set_release(void (*released)(void*), void* owner) {
    released_ = released;
    owner_ = owner;
  }
  [[nodiscard]] Waited wait() {
    waiting_.fetch_add(1, std::memory_order_relaxed);
    std::unique_lock<std::mutex> held(mutex_);
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    return {*this, std::move(held)};
  }
  /// Not held if another thread has it, or waits for it.
  [[nodiscard]] Held try_now() {
    if (waiting_.load(std::memory_order_relaxed) != 0) return {};
    return {mutex_, std::try_to_lock};
  }

 private:
  std::mutex mutex_;
  std::atomic<u32> waiting_{0};
  void (*released_)(void*) = nullptr;
  void* owner_ = nullptr;
};

}  // namespace doorbell::roce
