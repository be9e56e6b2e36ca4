// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/copy_stage.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace doorbell::net {

CopyStage::CopyStage(std::shared_ptr<gpu::Gpu> gpu, u64 window_bytes, u32 window_packets,
                     WindowConsumer& consumer, u32 copies, u32 in_flight, u64 limit_ns)
    : gpu_(std::move(gpu)),
      buffers_(Place::gpu, gpu_, std::max(copies, 1u) + in_flight, window_bytes, window_packets),
      consumer_(consumer),
      limit_ns_(limit_ns),
      jobs_(std::max(copies, 1u)),
      thread_([this] { run(); }) {}

CopyStage::~CopyStage() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CopyStage::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || given_ != done_; });
    if (stop_) return;
    const Job job = jobs_[done_ % jobs_.size()];
    lock.unlock();
    std::exception_ptr error;
    try {
      gpu_->copy(buffers_.device(job.to), job.from.host, job.from.bytes);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error != nullptr) error_ = error;
    done_.fetch_add(1, std::memory_order_release);
    changed_.notify_all();
  }
}

void CopyStage::take(const Window& window) {
  poll();
  if (waiting() == jobs_.size() && !wait_for_copy(limit_ns_))
    throw Error(fmt::format("window {}", window.index),
                fmt::format("the GPU has not copied the one before it within {:.1f} s",
                            static_cast<double>(limit_ns_) * 1e-9),
                {}, ExitCode::data);
  if (!buffers_.available()) wait_for_buffer(buffers_, consumer_, limit_ns_);
  {
    const std::lock_guard lock(mutex_);
    jobs_[taken_ % jobs_.size()] = {window, buffers_.acquire()};
    given_ = ++taken_;
  }
  changed_.notify_all();
}

void CopyStage::poll() {
  // Pairs with the thread's store: a failed copy has left its reason, a good one its bytes.
  const u64 done = done_.load(std::memory_order_acquire);
  if (done != delivered_) {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
  }
  while (delivered_ < done) {
    const Job job = jobs_[delivered_++ % jobs_.size()];
    const Window there = buffers_.describe(job.to, job.from);
    job.from.give_back();
    consumer_.take(there);
  }
  consumer_.poll();
}

bool CopyStage::wait_for_copy(u64 limit_ns) {
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::nanoseconds(limit_ns),
                           [this] { return done_ > delivered_ || error_ != nullptr; }))
      return false;
  }
  poll();
  return true;
}

void CopyStage::wait(u64 limit_ns) {
  if (waiting() != 0) (void)wait_for_copy(limit_ns);
  else consumer_.wait(limit_ns);
}

void CopyStage::finish() {
  while (waiting() != 0)
    if (!wait_for_copy(limit_ns_))
      throw Error("windows", fmt::format("the GPU has not copied {} of them", waiting()), {}, ExitCode::data);
  consumer_.finish();
}

}  // namespace doorbell::net
