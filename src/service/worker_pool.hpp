// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Threads for calls that block, made when they are needed.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <doorbell/config.hpp>

namespace doorbell::service {

/// Any thread.
class WorkerPool {
 public:
  /// `most` threads, of which the first is made now. Throws Error if there is none to be had.
  WorkerPool(u32 most, const char* name);
  /// Finishes what was posted.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Runs `work` in one of the threads, in the order of the calls if there is one only. What it throws is
  /// forgotten.
  void post(std::function<void()> work);

 private:
  void run();
  const u32 most_;
  const char* const name_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  u32 idle_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace doorbell::service
