// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receives of one queue pair, or of several (a shared receive queue): any thread posts, whoever has the
// engine takes.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "rdma/roce/completion_queue.hpp"
#include "rdma/roce/engine_lock.hpp"
#include "rdma/roce/nic.hpp"
#include "rdma/roce/pieces.hpp"

namespace doorbell::roce {

inline constexpr u32 kMostSges = 32;

/// A receive that a message has taken; a copy, so that its slot is free again.
struct Receive {
  bool taken = false;
  u64 id = 0;
  u32 count = 0;
  u64 bytes = 0;
  PiecesCursor at;
  std::array<Sge, kMostSges> sges;

  [[nodiscard]] std::span<const Sge> pieces() const { return {sges.data(), count}; }
};

class ReceiveQueue {
 public:
  ReceiveQueue(u32 requests, u32 sges);

  Errno post(u64 id, std::span<const Sge> sges);
  [[nodiscard]] u32 requests() const { return requests_; }
  [[nodiscard]] u32 most_sges() const { return most_sges_; }

  // With the engine.
  [[nodiscard]] u64 waiting() const {
    return head_.load(std::memory_order_acquire) - tail_.load(std::memory_order_relaxed);
  }
  /// False: none is posted.
  bool take(Receive& into);
  void clear();

 private:
  struct Slot {
    u64 id = 0;
    u32 count = 0;
    u64 bytes = 0;
  };
  const u32 requests_, most_sges_;
  std::vector<Slot> slots_;
  std::vector<Sge> sges_;
  const u64 mask_;
  std::mutex post_lock_;
  alignas(64) std::atomic<u64> head_{0};  ///< written by posters, with post_lock_
  alignas(64) std::atomic<u64> tail_{0};  ///< written by the engine
};

class SharedReceives final : public SharedReceiveQueue {
 public:
  SharedReceives(u32 number, const SharedReceiveOptions& options, const Listener& listener,
                 EngineLock& engine, std::atomic<u32>& in_use);
  ~SharedReceives() override;

  [[nodiscard]] u32 number() const override { return number_; }
  Errno post(u64 id, std::span<const Sge> sges) override { return queue_.post(id, sges); }
  Errno set_limit(u32 limit) override;
  [[nodiscard]] u32 limit() const override { return limit_.load(std::memory_order_relaxed); }
  [[nodiscard]] u32 max_requests() const override { return queue_.requests(); }
  [[nodiscard]] u32 max_sges() const override { return queue_.most_sges(); }

  [[nodiscard]] u32 protection_domain() const { return protection_domain_; }
  /// Of XRC; nullptr: of queue pairs, which have their own.
  [[nodiscard]] CompletionRing* completions() const { return completions_; }
  [[nodiscard]] u32 xrc_domain() const { return xrc_domain_; }
  /// Called when it ends.
  void set_end(std::function<void(SharedReceives&)> call) { end_ = std::move(call); }
  /// With the engine.
  bool take(Receive& into);

 private:
  void look_at_limit();

  const u32 number_, protection_domain_, xrc_domain_;
  CompletionRing* const completions_;
  std::function<void(SharedReceives&)> end_;
  ReceiveQueue queue_;
  std::atomic<u32> limit_;
  const Listener& listener_;
  EngineLock& engine_;
  std::atomic<u32>& in_use_;
};

}  // namespace doorbell::roce
