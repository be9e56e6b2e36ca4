// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Objects with ids that say when they are old: the lower bits are a slot, the upper ones how often the slot
// has been used. An id of a removed object stays "stale" until its slot has been used 2^20 times more.
#pragma once

#include <doorbell/config.hpp>

#include <optional>
#include <utility>
#include <vector>

namespace doorbell::qdma::daemon {

template <class T>
class IdTable {
 public:
  static constexpr u32 kSlotBits = 12;
  static constexpr u32 kMaxSlots = 1u << kSlotBits;

  enum class Found { here, stale, unknown };

  /// Empty when all slots are in use.
  std::optional<u32> add(T value) {
    u32 slot = 0;
    while (slot < slots_.size() && slots_[slot].value) ++slot;
    if (slot == kMaxSlots) return {};
    if (slot == slots_.size()) slots_.emplace_back();
    slots_[slot].value.emplace(std::move(value));
    ++used_;
    return slots_[slot].generation << kSlotBits | slot;
  }
  [[nodiscard]] Found look(u32 id) const {
    const u32 slot = id % kMaxSlots, generation = id >> kSlotBits;
    if (slot >= slots_.size()) return Found::unknown;
    const Slot& s = slots_[slot];
    if (generation == s.generation) return s.value ? Found::here : Found::unknown;
    // A later generation than the slot's has not been given out yet.
    return generation < s.generation || s.wrapped ? Found::stale : Found::unknown;
  }
  /// Null unless look() says here.
  [[nodiscard]] T* find(u32 id) { return look(id) == Found::here ? &*slots_[id % kMaxSlots].value : nullptr; }
  void remove(u32 id) {
    if (look(id) != Found::here) return;
    Slot& s = slots_[id % kMaxSlots];
    s.value.reset();
    s.generation = (s.generation + 1) % (1u << (32 - kSlotBits));
    s.wrapped = s.wrapped || s.generation == 0;
    --used_;
  }
  [[nodiscard]] u32 size() const { return used_; }

 private:
  struct Slot {
    std::optional<T> value;
    u32 generation = 0;
    bool wrapped = false;
  };
  std::vector<Slot> slots_;
  u32 used_ = 0;
};

}  // namespace doorbell::qdma::daemon
