// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a model injects on purpose, and how often each happened.
#pragma once

#include <array>
#include <atomic>
#include <nlohmann/json_fwd.hpp>

#include "model/fault_draw.hpp"
#include "model/presence.hpp"

namespace doorbell::model {

/// Decides and counts, for all threads of one device. The model carries a fault out, and counts it only if it
/// really did.
class FaultInjector {
 public:
  /// `delay_ns`: how long Fault::delay holds a completion back.
  FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns = 0);

  [[nodiscard]] bool active() const { return active_; }
  /// The fault of command `serial` of queue `queue`. Does not count it.
  [[nodiscard]] InjectedFault draw(u64 queue, u64 serial, Direction direction) const {
    return draw_.draw(queue, serial, direction);
  }
  /// The draw without the counts, for a kernel.
  [[nodiscard]] const FaultDraw& rule() const { return draw_; }

  /// Applies and counts the fault of a completion that is due at `due_ns`. Calls `now` only if the time is
  /// needed.
  template <class Now>
  [[nodiscard]] CompletionReport apply_to_completion(const InjectedFault& injected, u64 due_ns, Now&& now) {
    if (FaultDraw::of_completion(injected.fault)) count(injected.fault);
    return draw_.report(injected.fault, due_ns, now);
  }
  /// Carries out Fault::removal: a device goes away once, and this is counted once.
  void remove(Presence& device) {
    if (device.leave()) count(Fault::removal);
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
  bool active_;
  FaultDraw draw_;
  // In a cache line of their own, because the other members are read for every command.
  alignas(64) std::array<std::atomic<u64>, kFaultKinds> counts_{};
};

}  // namespace doorbell::model
