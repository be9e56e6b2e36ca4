// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The interrupts of a model controller: completion queues name a vector, and whoever shows the model to a
// driver delivers it.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>

namespace doorbell::nvme {

/// Where a controller's interrupts go. Device threads call raise(), more than one at a time.
class InterruptSink {
 public:
  virtual ~InterruptSink() = default;
  /// A completion queue with this vector has entries that are visible now, and were not there or not read
  /// before. Must not block.
  virtual void raise(u16 vector) noexcept = 0;
};

/// The state of one controller's interrupts, which all of its threads share.
class Interrupts {
 public:
  /// Before any thread looks. `vectors`: how many completion queues may name, from 0.
  void connect(InterruptSink* sink, u32 vectors) {
    sink_ = sink;
    vectors_ = sink == nullptr ? 0 : vectors;
  }
  [[nodiscard]] bool connected() const { return sink_ != nullptr; }
  [[nodiscard]] u32 vectors() const { return vectors_; }

  /// Of a thread that has just made entries visible. A driver masks a vector of a pin by INTMS, before or
  /// after such a call; what it holds back then is raised by again().
  void raise(u16 vector) {
    if (vector < 32 && (mask_.load(std::memory_order_acquire) >> vector & 1) != 0) return;
    sink_->raise(vector);
  }

  // INTMS and INTMC: a bit for each of the first 32 vectors. Any thread.
  [[nodiscard]] u32 mask() const { return mask_.load(std::memory_order_acquire); }
  void mask(u32 bits) { mask_.fetch_or(bits, std::memory_order_acq_rel); }
  void unmask(u32 bits) {
    mask_.fetch_and(~bits, std::memory_order_acq_rel);
    again();
  }
  void reset() { mask_.store(0, std::memory_order_release); }

  /// Makes every thread raise the vectors of queues that have unread entries. The release orders a change of
  /// the mask, or of what the sink does, before the look at the queues that follows in each thread.
  void again() { again_.fetch_add(1, std::memory_order_release); }
  /// The calls of again() so far.
  [[nodiscard]] u32 rounds() const { return again_.load(std::memory_order_acquire); }

 private:
  InterruptSink* sink_ = nullptr;
  u32 vectors_ = 0;
  std::atomic<u32> mask_{0};
  std::atomic<u32> again_{0};
};

}  // namespace doorbell::nvme
