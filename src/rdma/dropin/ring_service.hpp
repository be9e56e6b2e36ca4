// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The thread that serves the rings which programs have been handed out: what a NIC does by itself when a
// doorbell rings.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "rdma/dropin/mlx5_rings.hpp"
#include "rdma/roce/nic.hpp"

namespace doorbell::dropin {

/// Any thread. The thread runs from the first ring handed out until the end; like every device thread of a
/// model it does not sleep, because nothing but memory says that a doorbell has rung.
class RingService {
 public:
  /// `nic` outlives it.
  explicit RingService(roce::Nic& nic) : nic_(nic) {}
  ~RingService();
  RingService(const RingService&) = delete;
  RingService& operator=(const RingService&) = delete;

  /// The rings of a queue, made at the first call and the same afterwards. They end with forget(), which
  /// comes before the queue's own end. Throws std::bad_alloc and std::system_error.
  const Mlx5QueueRings::Layout& rings_of(roce::QueuePair& queue, u32 send_requests, u32 receive_requests,
                                         u32 inline_bytes);
  const Mlx5CompletionRing::Layout& ring_of(roce::CompletionQueue& queue);
  /// Of a queue without rings: nothing happens.
  void reset(roce::QueuePair& queue);
  void forget(roce::QueuePair& queue);
  void forget(roce::CompletionQueue& queue);

 private:
  /// The lock of the maps; the thread lets go of it while somebody waits.
  class Held;
  void start();
  void serve();

  roce::Nic& nic_;
  std::mutex mutex_;
  std::atomic<u32> waiting_{0};
  std::atomic<bool> stop_{false};
  std::map<roce::QueuePair*, std::unique_ptr<Mlx5QueueRings>> queues_;
  std::map<roce::CompletionQueue*, std::unique_ptr<Mlx5CompletionRing>> completions_;
  std::thread thread_;
};

}  // namespace doorbell::dropin
