// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/worker_pool.hpp"

#include <pthread.h>

#include <exception>

#include "system/thread.hpp"

namespace doorbell::service {

WorkerPool::WorkerPool(u32 most, const char* name) : most_(most), name_(name) {
  threads_.reserve(most);
  threads_.push_back(make_thread(name, [this] { run(); }));
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& t : threads_) t.join();
}

void WorkerPool::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  if (work_.size() > idle_ && threads_.size() < most_) {
    try {
      threads_.push_back(make_thread(name_, [this] { run(); }));
    } catch (const std::exception&) {
      // Those that are there do it.
    }
  }
  wake_.notify_one();
}

void WorkerPool::run() {
  pthread_setname_np(pthread_self(), "worker");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    wake_.wait(lock, [&] { return stopping_ || !work_.empty(); });
    --idle_;
    if (work_.empty()) return;
    {
      const auto work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      try {
        work();
      } catch (const std::exception&) {
        // Memory, most likely; who waits for the call has its answer set to that before.
      }
    }
    lock.lock();
  }
}

}  // namespace doorbell::service
