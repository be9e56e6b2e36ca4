// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a model injects on purpose, and how often each happened.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <nlohmann/json_fwd.hpp>

#include "model/fault_draw.hpp"
#include "model/presence.hpp"

namespace doorbell::model {

/// Is told of each fault that a device has carried out. Its threads call it, so it is quick and does not
/// throw.
class FaultLog {
 public:
  virtual ~FaultLog() = default;
  /// `serial`: the command's number in its queue, from 0 on.
  virtual void injected(Fault fault, u64 queue, u64 serial) noexcept = 0;
};

/// Decides and counts, for all threads of one device. The model carries a fault out, and counts it only if it
/// really did.
class FaultInjector {
 public:
  /// `delay_ns`: how long Fault::delay holds a completion back.
  FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns = 0);

  [[nodiscard]] bool active() const { return rule_.load(std::memory_order_relaxed) != nullptr; }
  /// Other faults, of the same seed. While device threads go on: each sees the old rule or the new one. One
  /// caller at a time.
  void set(const FaultRates& rates);
  /// Null: nowhere. Before faults are injected.
  void log_to(FaultLog* log) { log_.store(log, std::memory_order_release); }
  /// Reports a fault that has been counted.
  void report(Fault f, u64 queue, u64 serial) const {
    if (FaultLog* const log = log_.load(std::memory_order_acquire)) log->injected(f, queue, serial);
  }
  /// The fault of command `serial` of queue `queue`. Does not count it.
  [[nodiscard]] InjectedFault draw(u64 queue, u64 serial, Direction direction) const {
    return rule().draw(queue, serial, direction);
  }
  /// The draw without the counts, for a kernel.
  [[nodiscard]] const FaultDraw& rule() const {
    // The acquire pairs with set(): a rule that is seen here is complete.
    const FaultDraw* const now = rule_.load(std::memory_order_acquire);
    return now != nullptr ? *now : none_;
  }

  /// Applies and counts the fault of a completion that is due at `due_ns`. Calls `now` only if the time is
  /// needed.
  template <class Now>
  [[nodiscard]] CompletionReport apply_to_completion(const InjectedFault& injected, u64 due_ns, Now&& now) {
    if (FaultDraw::of_completion(injected.fault)) count(injected.fault);
    return rule().report(injected.fault, due_ns, now);
  }
  /// Carries out Fault::removal: a device goes away once, and this is counted once.
  /// True for that once.
  bool remove(Presence& device) {
    const bool first = device.leave();
    if (first) count(Fault::removal);
    return first;
  }

  void count(Fault f, u64 times = 1) {
    counts_[static_cast<u32>(f)].fetch_add(times, std::memory_order_release);
  }
  [[nodiscard]] u64 counted(Fault f) const {
    return counts_[static_cast<u32>(f)].load(std::memory_order_acquire);
  }
  /// Every kind's count by its name.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  std::atomic<const FaultDraw*> rule_{nullptr};  ///< null while no fault has a probability
  std::atomic<FaultLog*> log_{nullptr};
  FaultDraw none_;               ///< the same seed and delay, and no faults
  std::deque<FaultDraw> rules_;  ///< all that there have been: a thread may still use an older one
  // In a cache line of their own, because the other members are read for every command.
  alignas(64) std::array<std::atomic<u64>, kFaultKinds> counts_{};
};

}  // namespace doorbell::model
