// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a model injects on purpose. Which command gets which fault depends only on the seed, the queue
// and the command's number in it, so a run can be repeated regardless of thread timing.
#pragma once

#include <algorithm>
#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "model/fault.hpp"
#include "model/presence.hpp"

namespace doorbell::model {

/// The kind of a command: corrupt and misplace apply to reads, stale to writes, the others to any command.
/// `both` is for messages between peers, where every kind can be noticed.
enum class Direction { to_host, to_device, none, both };

/// The fault that applies to one command, or none.
struct InjectedFault {
  Fault fault = Fault::none;
  u64 choice = 0;  ///< a number that belongs to the command, for faults that need a place

  /// Fault::corrupt: changes one of `bytes` bytes.
  void corrupt(u8* data, u64 bytes) const { data[position(bytes)] ^= 0x5a; }
  [[nodiscard]] u64 position(u64 bytes) const { return choice % bytes; }
  /// Fault::misplace: the other place for `bytes` bytes at `offset` of a memory of `size` bytes, if there is
  /// room. The distance is a multiple of `bytes`, so that good data of another address arrives, and not a
  /// mixture.
  [[nodiscard]] static std::optional<u64> elsewhere(u64 offset, u64 bytes, u64 size) {
    const u64 step = std::max<u64>(bytes, 8);
    if (size - offset >= step + bytes) return offset + step;
    if (offset >= step) return offset - step;
    return std::nullopt;
  }
};

/// Decides and counts, for all threads of one device. The model carries a fault out, and counts it only if it
/// really did.
class FaultInjector {
 public:
  /// How long Fault::reorder lets younger completions go first.
  static constexpr u64 kReorderHoldNs = 30'000;

  /// `delay_ns`: how long Fault::delay holds a completion back.
  FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns = 0);

  [[nodiscard]] bool active() const { return active_; }
  /// The fault of command `serial` of queue `queue`. Does not count it.
  [[nodiscard]] InjectedFault draw(u64 queue, u64 serial, Direction direction) const;

  /// How often a completion is reported, and at what time; 0: at once.
  struct CompletionReport {
    u32 times = 1;
    u64 due_ns = 0;
  };
  /// Applies and counts the fault of a completion that is due at `due_ns`. Calls `now` only if the time is
  /// needed.
  template <class Now>
  [[nodiscard]] CompletionReport apply_to_completion(const InjectedFault& injected, u64 due_ns, Now&& now) {
    CompletionReport t{1, due_ns};
    switch (injected.fault) {
      case Fault::drop:
        t.times = 0;
        break;
      case Fault::duplicate:
        t.times = 2;
        break;
      case Fault::delay:
        t.due_ns = std::max<u64>(due_ns, now()) + delay_ns_;
        break;
      case Fault::reorder:
        t.due_ns = std::max<u64>(due_ns, now()) + kReorderHoldNs;
        break;
      default:
        return t;
    }
    count(injected.fault);
    return t;
  }
  /// Carries out Fault::removal: a device goes away once, and this is counted once.
  void remove(Presence& device) {
    if (device.leave()) count(Fault::removal);
  }

  void count(Fault f) { counts_[static_cast<u32>(f)].fetch_add(1, std::memory_order_release); }
  [[nodiscard]] u64 counted(Fault f) const {
    return counts_[static_cast<u32>(f)].load(std::memory_order_acquire);
  }
  /// Every kind's count by its name.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  bool active_;
  u64 seed_;
  u64 delay_ns_;
  std::array<u64, kFaultKinds> threshold_{};
  // In a cache line of their own, because the other members are read for every command.
  alignas(64) std::array<std::atomic<u64>, kFaultKinds> counts_{};
};

}  // namespace doorbell::model
