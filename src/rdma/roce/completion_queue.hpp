// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A completion queue: one writer (whoever has the engine), any number of threads that poll.
#pragma once

#include <atomic>
#include <bit>
#include <mutex>
#include <vector>

#include "rdma/roce/engine_lock.hpp"
#include "rdma/roce/nic.hpp"

namespace doorbell::roce {

class CompletionRing final : public CompletionQueue {
 public:
  /// `in_use` counts queues; whoever pushes has the `engine`.
  CompletionRing(u32 entries, u32 most, const Listener& listener, EngineLock& engine,
                 std::atomic<u32>& in_use);
  ~CompletionRing() override { in_use_.fetch_sub(1, std::memory_order_relaxed); }

  std::size_t poll(std::span<Completion> into) override;
  void arm(bool solicited) override;
  [[nodiscard]] u32 entries() const override { return entries_.load(std::memory_order_relaxed); }
  Errno resize(u32 entries) override;
  void after_each(std::function<void()> call) override;

  /// With the engine. False: there is no room, and the completion is lost; the first time is an event.
  /// `asked`: a queue armed for solicited completions reports it.
  bool push(const Completion& completion, bool asked) {
    const u64 head = head_.load(std::memory_order_relaxed);
    const u32 most = entries_.load(std::memory_order_relaxed);
    if (head - seen_tail_ >= most) {
      // A poller has copied what lay in the slots that it released.
      seen_tail_ = tail_.load(std::memory_order_acquire);
      if (head - seen_tail_ >= most) return overrun();
    }
    ring_[head & mask_] = completion;
    // The entry is seen before the head; and the head is written before armed_ is read: either this side sees
    // that the queue is armed, or who armed it finds the completion when it polls again.
    head_.store(head + 1, std::memory_order_seq_cst);
    if (armed_.load(std::memory_order_seq_cst) != kNot) report(asked);
    if (after_each_) after_each_();
    return true;
  }
  /// With the engine: drops completions of a queue pair.
  void forget(u32 queue_pair);

 private:
  static constexpr u8 kNot = 0, kSolicitedOnly = 1, kAny = 2;

  bool overrun();
  void report(bool asked);

  const Listener& listener_;
  EngineLock& engine_;
  std::atomic<u32>& in_use_;
  const u32 most_;
  std::vector<Completion> ring_;
  u64 mask_;
  std::atomic<u32> entries_;
  bool overrun_reported_ = false;
  std::function<void()> after_each_;  ///< with the engine

  alignas(64) std::atomic<u64> head_{0};  ///< written by the engine
  u64 seen_tail_ = 0;
  alignas(64) std::atomic<u8> armed_{kNot};
  alignas(64) std::atomic<u64> tail_{0};  ///< written by pollers, with poll_lock_
  std::mutex poll_lock_;
};

}  // namespace doorbell::roce
