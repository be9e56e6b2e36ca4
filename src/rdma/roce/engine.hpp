// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC: its queue pairs and memory, and the rounds in which they work.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "rdma/roce/number_table.hpp"
#include "rdma/roce/queue_pair.hpp"
#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::roce {

class NicEngine final : public Nic {
 public:
  static constexpr u32 kManagement = 1;

  NicEngine(Carrier& carrier, Listener listener, const Limits& limits, const CompletionFaults& faults,
            const std::string& fault_log);

  [[nodiscard]] const Limits& limits() const override { return limits_; }
  bool progress() override;
  bool progress_waiting() override;
  void between_rounds(const std::function<void()>& work) override;
  [[nodiscard]] u64 next_due_ns() const override { return next_due_ns_.load(std::memory_order_relaxed); }
  /// progress_waiting() at a time that a test says.
  bool round_at(u64 wall_ns);

  Errno register_memory(u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                        RegisteredMemory& into) override;
  Errno deregister_memory(u32 local_key) override;
  Errno reregister_memory(u32 local_key, u32 bits, u32 protection_domain, void* start, u64 bytes, u64 iova,
                          u32 access, RegisteredMemory& into) override;
  Errno make_window(u32 protection_domain, u8 type, u32& remote_key) override;
  Errno free_window(u32 remote_key) override;
  Errno make_completion_queue(u32 entries, std::unique_ptr<CompletionQueue>& into) override;
  Errno make_shared_receive_queue(const SharedReceiveOptions& options,
                                  std::unique_ptr<SharedReceiveQueue>& into) override;
  Errno make_queue_pair(const QueuePairOptions& options, std::unique_ptr<QueuePair>& into) override;
  [[nodiscard]] Counters counters() const override;

  // For queue pairs.
  [[nodiscard]] EngineLock::Waited engine() const { return engine_.wait(); }
  [[nodiscard]] KeyTable& keys() { return keys_; }
  [[nodiscard]] const NumberTable<SharedReceives>& xrc_receives() const { return xrc_receives_; }
  [[nodiscard]] Carrier& carrier() { return carrier_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] CompletionFaultDraws* faults() { return faults_ ? &*faults_ : nullptr; }
  [[nodiscard]] const Listener& listener() const { return listener_; }
  /// A program has posted. Any thread.
  void ring(ModelledQueuePair& queue_pair);
  // With the engine.
  void activate(ModelledQueuePair& queue_pair);
  void watch(ModelledQueuePair& queue_pair);
  void forget(ModelledQueuePair& queue_pair);

 private:
  bool round(u64 wall_ns);
  [[nodiscard]] bool left_over() const;
  void take_rung();
  void expire_timers();
  void dispatch(const Arrival& arrival);
  void set_due();
  [[nodiscard]] ModelledQueuePair* find(u32 number) const {
    ModelledQueuePair* found = table_.find(number);
    if (found != nullptr) return found;
    return number == kManagement ? management_ : nullptr;
  }
  void forget(SharedReceives& receives);

  Carrier& carrier_;
  const Listener listener_;
  const Limits limits_;
  std::optional<CompletionFaultDraws> faults_;
  KeyTable keys_;
  Clock clock_;
  RunningTime running_;

  mutable EngineLock engine_;
  std::atomic<u64> next_due_ns_{kNever};

  ModelledQueuePair* management_ = nullptr;  ///< has no place in the table, which is for numbers in a row
  NumberTable<ModelledQueuePair> table_;
  u32 queue_pairs_ = 0;
  std::atomic<u32> completion_queues_{0}, shared_receives_{0};
  u32 next_shared_ = 1;
  NumberTable<SharedReceives> xrc_receives_;

  std::vector<ModelledQueuePair*> active_, turn_, timed_;
  u64 timer_due_ = kNever;  ///< of Clock::ran_ns; not later than the first deadline
  bool blocked_ = false;
  Counters counters_;  ///< what belongs to no queue pair, and of those that are gone

  alignas(64) std::atomic<ModelledQueuePair*> rung_{nullptr};
};

}  // namespace doorbell::roce
