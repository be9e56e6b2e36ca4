// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Both ends of a loopback on one endpoint: buffers, queues, the counter of acknowledgements, the portals
// entry. Posts puts and waits for them.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/event_queue.hpp>

#include <array>

#include "cxi/loopback.hpp"

namespace doorbell::cxi {

/// Thread rule: one thread.
class LoopbackLink {
 public:
  /// Throws CallError for a refused call, and LoopbackError for an event that does not come or has an error.
  LoopbackLink(CassiniDevice& device, Endpoint& endpoint, const LoopbackOptions& options);

  static constexpr u32 kMaxArmed = 2;
  /// Arms an event for `puts` more acknowledgements and posts that many puts, with one doorbell each. At most
  /// kMaxArmed events may be armed at a time. False on failure().
  [[nodiscard]] bool post(u32 puts);
  /// Waits for the oldest armed event. False on failure().
  [[nodiscard]] bool wait();
  [[nodiscard]] const std::optional<LoopbackFailure>& failure() const { return failure_; }

  /// The acknowledgements asked for so far: one for each put.
  [[nodiscard]] u64 threshold() const { return threshold_; }
  /// The device's present count; waits a short time for the count to reach the threshold.
  [[nodiscard]] CounterCounts settle();
  /// After a failure: takes the other events for refused puts.
  void drain(LoopbackResult& into);

  [[nodiscard]] Region& source() { return source_; }
  [[nodiscard]] Region& destination() { return destination_; }
  [[nodiscard]] u64 doorbells() const { return doorbells_; }
  [[nodiscard]] u64 polls() const { return polls_; }

 private:
  using Commands = CommandQueue<OneLane>;
  using Events = EventQueue<OneLane>;

  void enable();
  /// For set-up: throws unless this event comes in time and with the return code OK.
  void expect(EventType type);
  template <class Ready>
  [[nodiscard]] bool wait_for_room(Commands& queue, const Ready& ready);
  [[nodiscard]] bool arm();
  [[nodiscard]] bool check_event(const Events::Polled& event);
  bool fail(LoopbackFailure::Kind kind);
  void ask_for_counts();
  [[nodiscard]] bool removed() const { return alive_ != nullptr && load_acquire(alive_) == 0; }

  const LoopbackOptions& o_;
  const u32* const alive_;
  const Dfa own_address_;
  // In the order of creation; destruction is in the reverse order.
  std::unique_ptr<EventQueueObject> tx_events_object_;
  Region source_;
  std::unique_ptr<MemoryDescriptor> source_md_;
  std::unique_ptr<CommandQueueObject> tx_object_;
  std::unique_ptr<CounterObject> counter_object_;
  std::unique_ptr<CommandQueueObject> triggered_object_;
  std::unique_ptr<EventQueueObject> rx_events_object_;
  Region destination_;
  std::unique_ptr<MemoryDescriptor> destination_md_;
  std::unique_ptr<CommandQueueObject> portals_object_;
  std::unique_ptr<PortalsEntry> entry_;

  Events tx_events_;
  Events rx_events_;
  Commands tx_;
  Commands triggered_;
  Commands portals_queue_;
  Counter counter_;
  NomatchDma put_;
  u64 threshold_ = 0;
  std::array<u64, kMaxArmed> armed_{};  ///< thresholds whose events have not come, oldest first
  u32 armed_count_ = 0;
  std::vector<ReturnCode> refused_;  ///< return codes of refused puts, in order of arrival
  std::optional<LoopbackFailure> failure_;
  u64 doorbells_ = 0;
  u64 polls_ = 0;
};

}  // namespace doorbell::cxi
