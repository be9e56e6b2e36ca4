// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's view of rings: where each stands, and how an initiator's index is taken for progress.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// What an index that an initiator publishes counts.
enum class Counts {
  slots,      ///< the slot: 0..entries-1
  two_turns,  ///< the slot, and whether the turn is an odd one
  bits16,     ///< all entries ever, 16 bits
  bits24,
};

/// The index that stands for `at`, and the number of different ones.
struct PublishedIndex {
  u32 value = 0;
  u32 modulo = 1;
};
[[nodiscard]] inline PublishedIndex published(const RingPosition& at, Counts counts) {
  switch (counts) {
    case Counts::slots:
      return {at.slot, at.units};
    case Counts::two_turns:
      return {(at.pass & 1) * at.units + at.slot, 2 * at.units};
    case Counts::bits16:
      return {at.running & 0xffff, 0x10000};
    case Counts::bits24:
      break;
  }
  return {at.running & 0xffffff, 0x1000000};
}

inline constexpr u32 kNoIndex = ~0u;

/// How far ahead of `at` an initiator's index is; more than any ring holds when it is none.
[[nodiscard]] inline u32 distance(const RingPosition& at, Counts counts, u32 value) {
  const PublishedIndex here = published(at, counts);
  if (value >= here.modulo) return kNoIndex;
  return value >= here.value ? value - here.value : value + here.modulo - here.value;
}

/// Entries in host or GPU memory. Rings are looked up once, when their queue pair is created.
struct RingMemory {
  Word16* host = nullptr;  ///< null when the ring lies in GPU memory
  Iova iova = 0;
};

/// A ring that the NIC reads: `at` is the next unit to take, `announced` what is there behind it.
struct WorkRing {
  RingMemory memory;
  RingPosition at;
  u32 mark = 0;   ///< of the last request taken, where completions count requests
  u32 marks = 0;  ///< different marks; 0: 2^32
  u32 announced = 0;
  u32 capacity = 0;  ///< units that can be announced at once
  u64* doorbell = nullptr;
  u32* record = nullptr;

  enum class Heard { nothing, news, nonsense };
  /// Takes an initiator's index for the ring's new end.
  Heard announce(Counts counts, u32 value) {
    const u32 ahead = distance(at, counts, value);
    if (ahead == announced) return Heard::nothing;
    if (ahead < announced || ahead > capacity) return Heard::nonsense;
    announced = ahead;
    return Heard::news;
  }
  /// Counted by itself, because 2^32 is no multiple of `marks`: a remainder of `at.serial` would jump.
  [[nodiscard]] u32 next_mark() const { return mark + 1 == marks ? 0 : mark + 1; }
  void take(u32 units, u32 packets = 0) {
    mark = next_mark();
    at = advance(at, 1, units, packets);
    announced -= units < announced ? units : announced;
  }
};

/// Whether a doorbell's value is for the queue whose word it was found in.
[[nodiscard]] inline bool addressed(const DoorbellValue& v, DoorbellValue::Queue queue, u32 number) {
  return (v.queue == queue || v.queue == DoorbellValue::Queue::by_register) && v.id == number;
}

/// A completion ring: the NIC writes at `at`; `held` entries are not given back yet.
struct CompletionRing {
  RingMemory memory;
  RingPosition at;
  RingPosition consumed;
  u32 held = 0;
  u32 capacity = 0;
  u64* doorbell = nullptr;
  u32* record = nullptr;
  u32 number = 0;
  bool broken = false;       ///< it overflowed: no entry is ever written again
  bool unpublished = false;  ///< entries are written that the ring state does not tell of yet
};

/// How the device side of a format finds an initiator's indices: in records or in doorbell words; `named`:
/// what those words name a queue pair by. Each vendor's is in vendors/NAME.hpp.
template <class F>
struct Indices;

}  // namespace doorbell::rdma
