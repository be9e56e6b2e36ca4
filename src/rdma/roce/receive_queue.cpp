// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/receive_queue.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace doorbell::roce {

ReceiveQueue::ReceiveQueue(u32 requests, u32 sges)
    : requests_(requests),
      most_sges_(std::max<u32>(sges, 1)),
      slots_(std::bit_ceil(std::max<u32>(requests, 1))),
      sges_(slots_.size() * most_sges_),
      mask_(slots_.size() - 1) {}

Errno ReceiveQueue::post(u64 id, std::span<const Sge> sges) {
  if (sges.size() > most_sges_) return EINVAL;
  const std::scoped_lock lock(post_lock_);
  const u64 head = head_.load(std::memory_order_relaxed);
  if (head - tail_.load(std::memory_order_acquire) >= requests_) return ENOMEM;
  Slot& slot = slots_[head & mask_];
  slot.id = id;
  slot.count = static_cast<u32>(sges.size());
  slot.bytes = bytes_of(sges);
  std::copy(sges.begin(), sges.end(), &sges_[(head & mask_) * most_sges_]);
  // The slot is written before the engine sees it.
  head_.store(head + 1, std::memory_order_release);
  return 0;
}

bool ReceiveQueue::take(Receive& into) {
  const u64 tail = tail_.load(std::memory_order_relaxed);
  if (head_.load(std::memory_order_acquire) == tail) return false;
  const Slot& slot = slots_[tail & mask_];
  into.taken = true;
  into.id = slot.id;
  into.count = slot.count;
  into.bytes = slot.bytes;
  into.at = {};
  const Sge* sges = &sges_[(tail & mask_) * most_sges_];
  std::copy(sges, sges + slot.count, into.sges.begin());
  // The slot is copied before it may be written again.
  tail_.store(tail + 1, std::memory_order_release);
  return true;
}

void ReceiveQueue::clear() {
  const std::scoped_lock lock(post_lock_);
  tail_.store(head_.load(std::memory_order_relaxed), std::memory_order_release);
}

SharedReceives::SharedReceives(u32 number, const SharedReceiveOptions& options, const Listener& listener,
                               EngineLock& engine, std::atomic<u32>& in_use)
    : number_(number),
      protection_domain_(options.protection_domain),
      xrc_domain_(options.xrc_domain),
      completions_(static_cast<CompletionRing*>(options.completions)),
      queue_(options.requests, options.sges),
      limit_(options.limit),
      listener_(listener),
      engine_(engine),
      in_use_(in_use) {
  in_use_.fetch_add(1, std::memory_order_relaxed);
}

SharedReceives::~SharedReceives() {
  if (end_) end_(*this);
  in_use_.fetch_sub(1, std::memory_order_relaxed);
}

Errno SharedReceives::set_limit(u32 limit) {
  if (limit > max_requests()) return EINVAL;
  const auto engine = engine_.wait();
  limit_.store(limit, std::memory_order_relaxed);
  look_at_limit();
  return 0;
}

bool SharedReceives::take(Receive& into) {
  if (!queue_.take(into)) return false;
  look_at_limit();
  return true;
}

void SharedReceives::look_at_limit() {
  const u32 limit = limit_.load(std::memory_order_relaxed);
  if (limit == 0 || queue_.waiting() >= limit) return;
  limit_.store(0, std::memory_order_relaxed);
  if (listener_.shared_receive_queue) listener_.shared_receive_queue(*this, Event::srq_limit);
}

}  // namespace doorbell::roce
