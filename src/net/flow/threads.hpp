// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The threads of one end of a run: started together for a phase, each on a core of its own where there are
// enough.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "measure/cpu_time.hpp"
#include "system/thread.hpp"

namespace doorbell::net {

/// The use of one thread in a phase.
struct ThreadUse {
  std::string role;  ///< "tx", "rx" or "master"
  u32 index = 0;
  int core = -1;  ///< -1: not bound to one
  measure::ThreadCost cost;
  double elapsed_s = 0;  ///< in which `cost` arose
  double useful = 0;     ///< share of its polls or calls that moved something
};

/// The cores that this process may run on.
[[nodiscard]] std::vector<int> allowed_cores();

class Threads {
 public:
  /// Starts `count` threads which call `body(index, &use)`. `cores[i]`: where thread i runs; fewer: no
  /// binding.
  Threads(const std::string& role, u32 count, const std::vector<int>& cores,
          std::function<void(u32 index, ThreadUse* use)> body);
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  /// True when all have ended. Any thread.
  [[nodiscard]] bool ended() const { return running_.load(std::memory_order_acquire) == 0; }
  /// Waits until all have ended, at most `limit`. Any thread.
  [[nodiscard]] bool ended_within(std::chrono::nanoseconds limit);
  /// True when one has ended by an exception. Any thread.
  [[nodiscard]] bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Waits for all; throws what the first of them has thrown.
  void join();
  /// After join().
  [[nodiscard]] const std::vector<ThreadUse>& uses() const { return uses_; }

 private:
  enum class Begun : u32 { no, yes, never };
  void release(Begun how);
  std::vector<ThreadUse> uses_;
  std::vector<std::exception_ptr> failures_;
  std::atomic<bool> failed_{false};
  std::atomic<u32> running_;
  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::atomic<Begun> begun_{Begun::no};
  JoinedThreads threads_;  // the last member: they use the others
};

}  // namespace doorbell::net
