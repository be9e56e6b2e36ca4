// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults that a model injects on purpose: which command gets which is a function of the seed, the
// queue and the command's number in it, so a run can be repeated whatever the threads do.
#pragma once

#include <algorithm>
#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "model/fault.hpp"
#include "model/presence.hpp"

namespace doorbell::model {

/// What kind of command asks: corrupt and misplace hit reads, stale hits writes, the rest any. `both` is for
/// messages between peers, where every kind can be told.
enum class Direction { to_host, to_device, none, both };

/// What goes wrong with one command: one fault or none.
struct Strike {
  Fault fault = Fault::none;
  u64 choice = 0;  ///< a number that belongs to the command, for faults that choose a place

  /// Fault::corrupt: changes one of `bytes` bytes.
  void corrupt(u8* data, u64 bytes) const { data[position(bytes)] ^= 0x5a; }
  [[nodiscard]] u64 position(u64 bytes) const { return choice % bytes; }
  /// Fault::misplace: where `bytes` bytes at `offset` of a memory of `size` bytes end up instead, if there is
  /// room. A multiple of their length away, so that what arrives is good data of another address and not
  /// merely torn.
  [[nodiscard]] static std::optional<u64> elsewhere(u64 offset, u64 bytes, u64 size) {
    const u64 step = std::max<u64>(bytes, 8);
    if (size - offset >= step + bytes) return offset + step;
    if (offset >= step) return offset - step;
    return std::nullopt;
  }
};

/// Decides and counts, for all threads of one device. The model carries a fault out, and counts it when it
/// really did.
class FaultInjector {
 public:
  /// By how much Fault::reorder lets younger completions go first.
  static constexpr u64 kReorderHoldNs = 30'000;

  /// `delay_ns`: by how much Fault::delay holds a completion back.
  FaultInjector(const FaultRates& rates, u64 seed, u64 delay_ns = 0);

  [[nodiscard]] bool active() const { return active_; }
  /// What strikes command `serial` of queue `queue`. Does not count it.
  [[nodiscard]] Strike draw(u64 queue, u64 serial, Direction direction) const;

  /// How often a completion is told, and when; 0: at once.
  struct Telling {
    u32 times = 1;
    u64 due_ns = 0;
  };
  /// Carries out, and counts, what strikes a completion that is due at `due_ns`. `now` is called only where
  /// it is needed.
  template <class Now>
  [[nodiscard]] Telling tell(const Strike& strike, u64 due_ns, Now&& now) {
    Telling t{1, due_ns};
    switch (strike.fault) {
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
    count(strike.fault);
    return t;
  }
  /// Carries out Fault::removal: a device goes away once, and that is counted once.
  void remove(Presence& device) {
    if (device.leave()) count(Fault::removal);
  }

  void count(Fault f) { counts_[static_cast<u32>(f)].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] u64 counted(Fault f) const {
    return counts_[static_cast<u32>(f)].load(std::memory_order_relaxed);
  }
  /// Every kind's count by its name.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  bool active_;
  u64 seed_;
  u64 delay_ns_;
  std::array<u64, kFaultKinds> threshold_{};
  // In a cache line of their own: the rest is read for every command.
  alignas(64) std::array<std::atomic<u64>, kFaultKinds> counts_{};
};

}  // namespace doorbell::model
