// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which fault applies to which command, and what it does to the completion: pure functions, the same on a CPU
// and in a kernel. Which command gets which fault depends only on the seed, the queue and the command's
// number in it, so a run can be repeated regardless of timing.
#pragma once

#include <doorbell/pattern_unit.hpp>

#include <algorithm>
#include <optional>

#include "model/fault.hpp"

namespace doorbell::model {

/// The kind of a command: corrupt and misplace apply to reads, stale to writes, the others to any command.
/// `both` is for messages between peers, where every kind can be noticed.
enum class Direction { to_host, to_device, none, both };

/// The fault that applies to one command, or none.
struct InjectedFault {
  Fault fault = Fault::none;
  u64 choice = 0;  ///< a number that belongs to the command, for faults that need a place

  /// Fault::corrupt: changes one of `bytes` bytes.
  void corrupt(u8* data, u64 bytes) const { data[position(bytes)] ^= kDamage; }
  static constexpr u8 kDamage = 0x5a;
  [[nodiscard]] DOORBELL_INLINE u64 position(u64 bytes) const { return choice % bytes; }
  /// Fault::misplace: the other place for `bytes` bytes at `offset` of a memory of `size` bytes, if there is
  /// room. The distance is that of places that begin at multiples of 64, as initiators keep their payloads,
  /// so that good data of another address arrives, and not a mixture; where there is no room for that,
  /// `bytes`.
  [[nodiscard]] DOORBELL_HD static std::optional<u64> elsewhere(u64 offset, u64 bytes, u64 size) {
    const u64 steps[] = {((bytes > 0 ? bytes : 1) + 63) / 64 * 64, bytes > 8 ? bytes : 8};
    for (const u64 step : steps) {
      if (size - offset >= step + bytes) return offset + step;
      if (offset >= step) return offset - step;
    }
    return std::nullopt;
  }
};

/// How often a completion is reported, and at what time; 0: at once.
struct CompletionReport {
  u32 times = 1;
  u64 due_ns = 0;
};

struct FaultDraw {
  /// How long Fault::reorder lets younger completions go first.
  static constexpr u64 kReorderHoldNs = 30'000;

  u64 seed = 1;
  u64 delay_ns = 0;  ///< how long Fault::delay holds a completion back
  u64 threshold[kFaultKinds] = {};

  /// The fault of command `serial` of queue `queue`.
  [[nodiscard]] DOORBELL_HD InjectedFault draw(u64 queue, u64 serial, Direction direction) const {
    const u64 command = serial ^ (queue << 48);
    for (u32 k = 0; k < kFaultKinds; ++k) {
      const auto f = static_cast<Fault>(k);
      if (threshold[k] == 0 || !applies(f, direction)) continue;
      // Kinds are drawn in turn, and the first one drawn is the only fault.
      if (pattern::mix64(seed ^ pattern::mix64(command ^ (u64{k + 1} << 40))) <= threshold[k])
        return {f, pattern::mix64(~seed ^ pattern::mix64(command))};
    }
    return {};
  }

  /// The report of a completion that has `fault` and is due at `due_ns`. Calls `now` only if the time is
  /// needed.
  template <class Now>
  [[nodiscard]] DOORBELL_HD CompletionReport report(Fault fault, u64 due_ns, Now&& now) const {
    switch (fault) {
      case Fault::drop:
        return {0, due_ns};
      case Fault::duplicate:
        return {2, due_ns};
      case Fault::delay:
        return {1, later_of(due_ns, now()) + delay_ns};
      case Fault::reorder:
        return {1, later_of(due_ns, now()) + kReorderHoldNs};
      default:
        return {1, due_ns};
    }
  }
  /// True for the faults that report() carries out.
  [[nodiscard]] DOORBELL_INLINE static bool of_completion(Fault f) {
    return f == Fault::drop || f == Fault::duplicate || f == Fault::delay || f == Fault::reorder;
  }

 private:
  [[nodiscard]] DOORBELL_INLINE static u64 later_of(u64 a, u64 b) { return a > b ? a : b; }
  [[nodiscard]] DOORBELL_INLINE static bool applies(Fault f, Direction direction) {
    if (direction == Direction::both) return true;
    if (f == Fault::corrupt || f == Fault::misplace) return direction == Direction::to_host;
    return f != Fault::stale || direction == Direction::to_device;
  }
};

}  // namespace doorbell::model
