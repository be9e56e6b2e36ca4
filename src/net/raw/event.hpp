// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the thread of one end of a ring in memory sleeps until the other end has done something.
#pragma once

#include <doorbell/config.hpp>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

namespace doorbell::net::raw {

/// One thread waits, any number notify. A notification costs one atomic exchange while no thread waits.
class alignas(64) Event {
 public:
  /// Call it behind what the waiting thread looks for.
  void notify() {
    // Whichever exchange comes second sees the other: this one a waiting thread, or that one what was done
    // here.
    if (waiting_.exchange(0, std::memory_order_acq_rel) != 0)
      syscall(SYS_futex, word(), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }

  /// Returns when `ready()` holds, after a notification, or after `limit_ns`.
  template <class Ready>
  void wait(u64 limit_ns, Ready ready) {
    static_cast<void>(waiting_.exchange(1, std::memory_order_acq_rel));
    if (!ready()) {
      const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                              static_cast<long>(limit_ns % 1'000'000'000)};
      syscall(SYS_futex, word(), FUTEX_WAIT_PRIVATE, 1, &limit, nullptr, 0);
    }
    waiting_.store(0, std::memory_order_relaxed);
  }

 private:
  /// The kernel looks at the same four bytes.
  u32* word() { return reinterpret_cast<u32*>(&waiting_); }
  std::atomic<u32> waiting_{0};
  static_assert(sizeof(std::atomic<u32>) == 4 && std::atomic<u32>::is_always_lock_free);
};

}  // namespace doorbell::net::raw
