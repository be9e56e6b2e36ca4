// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/completion_queue.hpp"

#include <algorithm>
#include <cerrno>

namespace doorbell::roce {

CompletionRing::CompletionRing(u32 entries, u32 most, const Listener& listener, EngineLock& engine,
                               std::atomic<u32>& in_use)
    : listener_(listener),
      engine_(engine),
      in_use_(in_use),
      most_(most),
      ring_(std::bit_ceil(entries)),
      mask_(ring_.size() - 1),
      entries_(entries) {
  in_use_.fetch_add(1, std::memory_order_relaxed);
}

std::size_t CompletionRing::poll(std::span<Completion> into) {
  // Most polls find nothing, and need no lock for that.
  if (head_.load(std::memory_order_acquire) == tail_.load(std::memory_order_relaxed)) return 0;
  const std::scoped_lock lock(poll_lock_);
  const u64 tail = tail_.load(std::memory_order_relaxed);
  const u64 ready = head_.load(std::memory_order_acquire) - tail;
  const std::size_t taken = std::min<u64>(ready, into.size());
  for (std::size_t i = 0; i < taken; ++i) into[i] = ring_[(tail + i) & mask_];
  // The slots are copied before the engine may write them again.
  tail_.store(tail + taken, std::memory_order_release);
  return taken;
}

void CompletionRing::arm(bool solicited) {
  const u8 wanted = solicited ? kSolicitedOnly : kAny;
  u8 before = armed_.load(std::memory_order_relaxed);
  while (before < wanted && !armed_.compare_exchange_weak(before, wanted, std::memory_order_seq_cst)) {
  }
  // armed_ is written before the caller's next poll reads the head (see push()).
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void CompletionRing::report(bool asked) {
  u8 armed = armed_.load(std::memory_order_relaxed);
  do {
    if (armed == kNot || (armed == kSolicitedOnly && !asked)) return;
  } while (!armed_.compare_exchange_weak(armed, kNot, std::memory_order_seq_cst));
  if (listener_.completion) listener_.completion(*this);
}

void CompletionRing::after_each(std::function<void()> call) {
  const auto engine = engine_.wait();
  after_each_ = std::move(call);
}

bool CompletionRing::overrun() {
  if (!overrun_reported_) {
    overrun_reported_ = true;
    if (listener_.completion_queue) listener_.completion_queue(*this, Event::cq_error);
  }
  return false;
}

Errno CompletionRing::resize(u32 entries) {
  if (entries == 0 || entries > most_) return EINVAL;
  const auto engine = engine_.wait();
  const std::scoped_lock lock(poll_lock_);
  const u64 tail = tail_.load(std::memory_order_relaxed);
  const u64 held = head_.load(std::memory_order_relaxed) - tail;
  if (held > entries) return EINVAL;
  std::vector<Completion> ring(std::bit_ceil(entries));
  for (u64 i = 0; i < held; ++i) ring[(tail + i) & (ring.size() - 1)] = ring_[(tail + i) & mask_];
  ring_ = std::move(ring);
  mask_ = ring_.size() - 1;
  entries_.store(entries, std::memory_order_relaxed);
  return 0;
}

void CompletionRing::forget(u32 queue_pair) {
  const std::scoped_lock lock(poll_lock_);
  const u64 tail = tail_.load(std::memory_order_relaxed);
  const u64 head = head_.load(std::memory_order_relaxed);
  // Completions that stay move towards the head, so that only the tail changes: who polls without the lock
  // reads the head alone.
  u64 to = head;
  for (u64 from = head; from != tail;) {
    --from;
    if (ring_[from & mask_].queue_pair == queue_pair) continue;
    --to;
    ring_[to & mask_] = ring_[from & mask_];
  }
  tail_.store(to, std::memory_order_release);
}

}  // namespace doorbell::roce
