// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's view of rings: their positions, and how an initiator's index shows progress.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/rdma/format.hpp>

namespace doorbell::rdma {

/// The meaning of an initiator's published index.
enum class Counts {
  slots,      ///< the slot: 0..entries-1
  two_turns,  ///< the slot, and whether the turn is odd
  bits16,     ///< all entries so far, 16 bits
  bits24,
};

/// The index that stands for `at`, and the number of different indices.
struct PublishedIndex {
  u32 value = 0;
  u32 modulo = 1;
};
[[nodiscard]] DOORBELL_INLINE PublishedIndex published(const RingPosition& at, Counts counts) {
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

/// How far an initiator's index is ahead of `at`. If the index is invalid: more than any ring holds.
[[nodiscard]] DOORBELL_INLINE u32 distance(const RingPosition& at, Counts counts, u32 value) {
  const PublishedIndex here = published(at, counts);
  if (value >= here.modulo) return kNoIndex;
  return value >= here.value ? value - here.value : value + here.modulo - here.value;
}

/// Entries in host or GPU memory. The address is looked up once, when the queue pair is created.
struct RingMemory {
  Word16* host = nullptr;  ///< where the engine reaches it; null when it has to fetch entries from a GPU
  Iova iova = 0;
};

/// A ring that the NIC reads: `at` is the next unit to take, `announced` the number of units from there on.
struct WorkRing {
  RingMemory memory;
  RingPosition at;
  u32 mark = 0;   ///< of the last request taken, if completions count requests
  u32 marks = 0;  ///< number of different marks; 0: 2^32
  u32 announced = 0;
  u32 capacity = 0;  ///< number of units that can be announced at once
  u64* doorbell = nullptr;
  u32* record = nullptr;

  enum class Update { none, advanced, invalid };
  /// Takes an initiator's index as the ring's new end.
  DOORBELL_INLINE Update announce(Counts counts, u32 value) {
    const u32 ahead = distance(at, counts, value);
    if (ahead == announced) return Update::none;
    if (ahead < announced || ahead > capacity) return Update::invalid;
    announced = ahead;
    return Update::advanced;
  }
  /// Counted separately, because 2^32 is no multiple of `marks`: a remainder of `at.serial` would jump.
  [[nodiscard]] DOORBELL_INLINE u32 next_mark() const { return mark + 1 == marks ? 0 : mark + 1; }
  /// The mark of the request `n` behind the next one; a ring has fewer marks than two turns of it.
  [[nodiscard]] DOORBELL_INLINE u32 mark_after(u32 n) const {
    const u64 m = u64{mark} + 1 + n;
    return static_cast<u32>(marks != 0 && m >= marks ? m - marks : m);
  }
  DOORBELL_INLINE void take(u32 units, u32 packets = 0) {
    mark = next_mark();
    at = advance(at, 1, units, packets);
    announced -= units < announced ? units : announced;
  }
  /// `n` > 0 requests of `units` announced units each, which are `packets` packets together.
  DOORBELL_INLINE void take_several(u32 n, u32 units, u32 packets) {
    mark = mark_after(n - 1);
    at = advance(at, n, units, 0);
    at.psn = (at.psn + packets) & 0xffffff;
    announced -= n * units;
  }
};

/// True if a doorbell's value is for the queue to which the doorbell word belongs.
[[nodiscard]] DOORBELL_INLINE bool addressed(const DoorbellValue& v, DoorbellValue::Queue queue, u32 number) {
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
  bool broken = false;       ///< the ring overflowed: no entry is ever written again
  bool unpublished = false;  ///< entries are written that the ring state does not show yet
};

/// How the device side of a format finds an initiator's indices: in records or in doorbell words. `named`:
/// what names a queue pair in those words. Each vendor's row is in vendors/NAME.hpp.
template <class F>
struct Indices;

}  // namespace doorbell::rdma
