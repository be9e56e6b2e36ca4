// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/serve/fault_writer.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <chrono>

#include "system/clock.hpp"
#include "system/thread.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kLastWritesNs = 3'000'000'000;
constexpr std::chrono::milliseconds kPause{2};  // until the log has room

}  // namespace

FaultWriter::FaultWriter(service::QueuedLog& log)
    : log_(log), thread_(make_thread("fault log", [this] {
        pthread_setname_np(pthread_self(), "fault log");
        run();
      })) {}

FaultWriter::~FaultWriter() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void FaultWriter::injected(model::Fault fault, u64 queue, u64 serial) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    if (waiting_.size() < kMostWaiting) waiting_.push_back({fault, queue, serial});
    else ++lost_;
  } catch (const std::bad_alloc&) {
    ++lost_;
  }
  wake_.notify_one();
}

u64 FaultWriter::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

u64 FaultWriter::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void FaultWriter::run() {
  std::unique_lock lock(mutex_);
  u64 give_up = 0;
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    if (stopping_ && give_up == 0) give_up = wall_ns() + kLastWritesNs;
    if (stopping_ && wall_ns() > give_up) {
      lost_ += waiting_.size();
      return;
    }
    if (!log_.has_room()) {
      lock.unlock();
      std::this_thread::sleep_for(kPause);
      lock.lock();
      continue;
    }
    const Entry e = waiting_.front();
    waiting_.pop_front();
    ++written_;
    lock.unlock();
    log_.write(
        {.priority = service::Priority::notice,
         .text = fmt::format("fault {}: queue {}, command {}", model::name(e.fault), e.queue, e.serial),
         .fields = {},
         .user = {}});
    lock.lock();
  }
}

}  // namespace doorbell::nvme
