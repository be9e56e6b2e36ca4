// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/ring_service.hpp"

#include "system/signals_blocked.hpp"

namespace doorbell::dropin {

class RingService::Held {
 public:
  explicit Held(RingService& service) : service_(service) {
    service.waiting_.fetch_add(1, std::memory_order_relaxed);
    service.mutex_.lock();
    service.waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  ~Held() { service_.mutex_.unlock(); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

 private:
  RingService& service_;
};

RingService::~RingService() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void RingService::start() {
  if (thread_.joinable()) return;
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { serve(); });
}

void RingService::serve() {
  while (!stop_.load(std::memory_order_relaxed)) {
    while (waiting_.load(std::memory_order_relaxed) != 0) std::this_thread::yield();
    bool any = false;
    {
      const std::lock_guard lock(mutex_);
      for (auto& [queue, rings] : queues_) any |= rings->serve();
      if (any) (void)nic_.progress();
      for (auto& [queue, ring] : completions_) any |= ring->serve();
    }
    if (!any && !nic_.progress()) std::this_thread::yield();
  }
}

const Mlx5QueueRings::Layout& RingService::rings_of(roce::QueuePair& queue, u32 send_requests,
                                                    u32 receive_requests, u32 inline_bytes) {
  const Held held(*this);
  auto it = queues_.find(&queue);
  if (it == queues_.end())
    it = queues_
             .emplace(&queue,
                      std::make_unique<Mlx5QueueRings>(queue, send_requests, receive_requests, inline_bytes))
             .first;
  start();
  return it->second->layout();
}

const Mlx5CompletionRing::Layout& RingService::ring_of(roce::CompletionQueue& queue) {
  const Held held(*this);
  auto it = completions_.find(&queue);
  if (it == completions_.end()) {
    it = completions_.emplace(&queue, std::make_unique<Mlx5CompletionRing>(queue)).first;
    // An entry is in the ring before the peer learns that its request has ended, as a device has it: the
    // thread alone might not run for a while.
    queue.after_each([ring = it->second.get()] { (void)ring->serve(); });
  }
  start();
  return it->second->layout();
}

void RingService::reset(roce::QueuePair& queue) {
  const Held held(*this);
  if (const auto it = queues_.find(&queue); it != queues_.end()) it->second->reset();
}
void RingService::forget(roce::QueuePair& queue) {
  const Held held(*this);
  queues_.erase(&queue);
}
void RingService::forget(roce::CompletionQueue& queue) {
  const Held held(*this);
  if (completions_.contains(&queue)) queue.after_each({});
  completions_.erase(&queue);
}

}  // namespace doorbell::dropin
