// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A thread that acts as a part of device hardware: it calls `poll()` in an endless loop, and yields the CPU
// after some time without work.
#pragma once

#include <doorbell/memory_order.hpp>

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "system/clock.hpp"
#include "system/polling.hpp"
#include "system/thread.hpp"

namespace doorbell::model {

/// The number of device threads for `queues`, if the options do not give it. Device threads and initiator
/// threads all poll, so together they should not exceed the number of cores.
[[nodiscard]] inline u32 device_threads(u32 queues, u32 initiator_threads) {
  const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
  const u32 left = cores > initiator_threads ? cores - initiator_threads : 1;
  return std::clamp(queues, 1u, left);
}

class DeviceThread {
 public:
  /// `poll` returns true when it found work. It must not throw. `rests`: after some time without work it
  /// sleeps in between, which the first work after that waits for.
  DeviceThread(const std::string& name, std::function<bool()> poll, bool rests = false)
      : thread_(make_thread("model thread " + name, [this, name, rests, poll = std::move(poll)] {
          pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
          const u32 per_yield = polls_per_yield(kIdlePollsPerYield);
          u32 idle = 0;
          u64 idle_since = 0;
          while (!stop_.load(std::memory_order_acquire)) {
            if (poll()) {
              idle = 0;
              continue;
            }
            cpu_relax();
            // With fewer cores than polling threads, a thread without work must yield, because it waits for
            // work that the other side does.
            if (++idle % per_yield != 0) continue;
            // A device looks at rare things once in so many polls: it does not sleep more often than
            // elsewhere.
            if (idle % kIdlePollsPerYield != 0) {
              std::this_thread::yield();
              continue;
            }
            if (rests) {
              const u64 now = wall_ns();
              if (idle == kIdlePollsPerYield) idle_since = now;
              const u64 idle_ns = now - idle_since;
              if (idle_ns > kRestAfterNs) {
                std::this_thread::sleep_for(idle_ns > kLongRestAfterNs ? kLongRest : kRest);
                continue;
              }
            }
            if (kSanitized && idle >= kIdlePollsPerSleep) std::this_thread::sleep_for(kSleep);
            else std::this_thread::yield();
          }
        })) {}
  ~DeviceThread() {
    stop_.store(true, std::memory_order_release);
    thread_.join();
  }
  DeviceThread(const DeviceThread&) = delete;
  DeviceThread& operator=(const DeviceThread&) = delete;

  [[nodiscard]] pthread_t handle() { return thread_.native_handle(); }

 private:
  static constexpr u32 kIdlePollsPerYield = 256;
  static constexpr u64 kRestAfterNs = 5'000'000, kLongRestAfterNs = 1'000'000'000;
  static constexpr std::chrono::microseconds kRest{50}, kLongRest{1000};
  // Under a sanitizer nothing is timed, and a poll is ten times as dear. While the initiators set up, check
  // or have ended, what an idle device does not use is there for other tests and compilers.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr bool kSanitized = true;
#else
  static constexpr bool kSanitized = false;
#endif
  static constexpr u32 kIdlePollsPerSleep = 16 * kIdlePollsPerYield;
  static constexpr std::chrono::microseconds kSleep{200};
  struct Counted {
    Counted() { polling_devices.fetch_add(1, std::memory_order_relaxed); }
    ~Counted() { polling_devices.fetch_sub(1, std::memory_order_relaxed); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
  };
  Counted counted_;  // before the thread: whoever polls for it knows of it
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace doorbell::model
