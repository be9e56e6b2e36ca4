// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The data that each one-sided operation of a loop carries and must leave behind: payloads, which are made
// before the post and checked where they arrive, and the values of the word that atomics change.
#pragma once

#include "loop/check_ring.hpp"
#include "loop/payload.hpp"
#include "rma/op_types.hpp"

namespace doorbell::rma {

/// The values of the one 64-bit word that a queue's atomics change, in closed form: the index of an operation
/// is enough to know which value the operation must find.
struct AtomicWalk {
  u64 base = 0;
  u64 addend = 0;

  DOORBELL_INLINE static AtomicWalk of(const OpPhase& phase, u32 number) {
    const u64 base = pattern::mix64(phase.seed ^ pattern::mix64(phase.generation + (u64{number} << 48)));
    return {base, base | 1};
  }
  /// Every fourth compare-swap compares with a wrong value and must change nothing.
  [[nodiscard]] DOORBELL_INLINE static bool misses(u64 i) { return i % 4 == 3; }
  [[nodiscard]] DOORBELL_INLINE u64 swapped(u64 k) const {
    return pattern::mix64(base + k * 0x9e3779b97f4a7c15ull);
  }
  /// The word's value before operation i.
  [[nodiscard]] DOORBELL_INLINE u64 before(Op op, u64 i) const {
    return op == Op::fetch_add ? base + i * addend : swapped(i - i / 4);
  }
  [[nodiscard]] DOORBELL_INLINE u64 operand(Op op, u64 i) const {
    return op == Op::fetch_add ? addend : swapped(i - i / 4 + 1);
  }
  [[nodiscard]] DOORBELL_INLINE u64 compare(u64 i) const {
    const u64 there = before(Op::compare_swap, i);
    return misses(i) ? ~there : there;
  }
};

DOORBELL_INLINE void store_word(u8* to, u64 v) {
  store16(reinterpret_cast<Word16*>(to), {{static_cast<u32>(v), static_cast<u32>(v >> 32), 0, 0}});
}
DOORBELL_INLINE u64 load_word(const u8* from) {
  const Word16 w = load16(reinterpret_cast<const Word16*>(from));
  return static_cast<u64>(w.w[1]) << 32 | w.w[0];
}

/// Makes and checks the payloads of one queue's operations. `first` + i is an operation's index in the phase,
/// and slot_of(i) is the slot that the operation uses.
template <class Warp>
class OpPayload {
 public:
  /// `phase` and `queue` must outlive this object.
  DOORBELL_INLINE OpPayload(const OpPhase& phase, const OpQueue& queue)
      : phase_(&phase), q_(&queue), walk_(AtomicWalk::of(phase, queue.number)) {
    // A payload is named after its place on the responder's side, whichever side's buffers receive the data.
    const bool to_local = phase.op == Op::read;
    source_ = to_local ? q_->remote : q_->local;
    const bool to_remote = phase.role == Role::responder || !to_local;
    target_ = to_remote ? q_->remote : q_->local;
    source_mirror_ = to_local ? q_->remote_mirror : q_->local_mirror;
    target_mirror_ = to_remote ? q_->remote_mirror : q_->local_mirror;
    first_address_ = first_address(queue.number);
  }

  /// The address that names the first payload of queue `number`.
  [[nodiscard]] DOORBELL_INLINE static u64 first_address(u64 number) { return number << 40; }
  [[nodiscard]] DOORBELL_INLINE const AtomicWalk& walk() const { return walk_; }
  /// Writes the first value of the word that atomics change.
  DOORBELL_INLINE void start(const Warp& warp) const {
    if (is_atomic(phase_->op) && q_->remote != nullptr && warp.lane() == 0) {
      store_word(q_->remote, walk_.before(phase_->op, 0));
      store(q_->remote_mirror, 0, kAtomicBytes);
    }
  }

  [[nodiscard]] DOORBELL_INLINE pattern::Identity identity(u64 index, u32 slot) const {
    return names()(index, slot);
  }
  /// Writes the first contents of each slot, for an initiator in another process to read.
  DOORBELL_INLINE void fill_standing(const Warp& warp, u32 slots) const {
    for (u32 i = 0; i < slots; ++i)
      payload::fill(warp, q_->remote + i * q_->stride, phase_->bytes, identity(i, i));
  }

  /// Fills the sources and marks the targets of `n` operations, as far as this process can reach them.
  template <class SlotOf>
  DOORBELL_INLINE void prepare(const Warp& warp, u64 first, u32 n, SlotOf slot_of) const {
    if (is_atomic(phase_->op)) {
      for (u32 i = warp.lane(); i < n; i += Warp::size)
        store_word(q_->local + slot_of(i) * q_->stride, ~walk_.before(phase_->op, first + i));
      return;
    }
    const Names names = this->names();
    const u32 bytes = phase_->bytes;
    const auto id = [&](u32 i) { return names(first + i, slot_of(i)); };
    const auto from = [&](u32 i) { return source_ + slot_of(i) * names.stride; };
    const auto to = [&](u32 i) { return target_ + slot_of(i) * names.stride; };
    if (bytes < payload::kUnitBytes) {
      if (source_ != nullptr) payload::fill_many(warp, n, bytes, id, from);
      if (target_ != nullptr) payload::poison_many(warp, n, bytes, id, to);
      return;
    }
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < n; ++i) {
      if (source_ != nullptr) payload::fill(warp, from(i), bytes, id(i));
      if (target_ != nullptr) payload::poison(warp, to(i), bytes, id(i));
    }
  }

  /// Marks only the targets. A responder does this before it posts receives.
  template <class SlotOf>
  DOORBELL_INLINE void poison(const Warp& warp, u64 first, u32 n, SlotOf slot_of) const {
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < n; ++i)
      payload::poison(warp, target_ + target_slot(first + i, slot_of(i)) * q_->stride, phase_->bytes,
                      identity(first + i, slot_of(i)));
  }

  /// True when this process can look at what operation `index` must leave behind.
  [[nodiscard]] DOORBELL_INLINE bool visible() const {
    return is_atomic(phase_->op) ? q_->local != nullptr : target_ != nullptr;
  }

  /// Checks `n` <= kManyAtMost operations. `wanted` has a bit for each operation to check. `found` is called
  /// on every lane with (i, verdict, address) for each operation that is wrong. `newest` is the last index in
  /// use.
  template <class SlotOf, class Found>
  DOORBELL_INLINE void check(const Warp& warp, u64 first, u32 n, u64 wanted, u64 newest, SlotOf slot_of,
                             Found found) const {
    if (is_atomic(phase_->op)) {
      check_atomics(warp, first, n, wanted, slot_of, found);
      return;
    }
    const Names names = this->names();
    const u32 bytes = phase_->bytes;
    const auto id = [&](u32 i) { return names(first + i, slot_of(i)); };
    const auto at = [&](u32 i) {
      return static_cast<const u8*>(target_) + arrival_slot(first + i, slot_of(i)) * names.stride;
    };
    const payload::Others others = this->others(names, newest);
    u64 closer = wanted;
    // The fast way reads the data of all operations, and the device may still write the data of one that was
    // given up.
    if (bytes < payload::kUnitBytes && wanted == ~u64{0} >> (64 - n))
      closer &= payload::check_many(warp, n, bytes, id, at);
    DOORBELL_NO_UNROLL
    for (; closer != 0; closer &= closer - 1) {
      const u32 i = lowest_bit(closer);
      const auto worst = payload::check(warp, at(i), bytes, id(i), others);
      if (worst.verdict != pattern::Verdict::ok) found(i, worst.verdict, worst.address);
    }
  }

  /// A Checker calls this function. The operations of a loop use its slots in turn: turn t makes ready
  /// slot t % window, in which operation t - window has ended.
  template <class Found>
  DOORBELL_INLINE void turns(const Warp& warp, const CheckRing& ring, u64 first, u32 n, u64 newest,
                             Found found) const {
    const u32 window = phase_->window;
    const u32 first_slot = static_cast<u32>(first % window);
    const auto slot_of = [&](u32 i) {
      return first_slot + i >= window ? first_slot + i - window : first_slot + i;
    };
    u64 wanted = 0;
    u32 followed = 0;
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const u32 i = base + warp.lane();
      const Turn t = i < n ? *ring.entry(first + i) : Turn{.last = 1};
      wanted |= warp.ballot(t.check != 0) << base;
      followed += count_bits(warp.ballot(t.last == 0));
    }
    if (wanted != 0) {
      fetch_wanted(first - window, n, wanted, slot_of);
      check(warp, first - window, n, wanted, newest, slot_of, [&](u32 i, pattern::Verdict v, u64 address) {
        found(first + i, v, address - address_of(first + i - window, slot_of(i)));
      });
    }
    // Lanes have loaded what other lanes are about to overwrite.
    warp.sync();
    // Once a turn is the last of its slot, so are all later ones.
    if (first < q_->count && followed > 0) {
      const u32 ready = q_->count - first < followed ? static_cast<u32>(q_->count - first) : followed;
      make_ready(warp, first, ready, slot_of);
      store_ready(first, ready, slot_of);
    }
  }
  /// Bytes [offset, offset + most) of the payloads of one turn.
  template <class Found>
  DOORBELL_INLINE void piece(const Warp& warp, const CheckRing& ring, u64 turn, u64 offset, u32 most,
                             u64 newest, Found found) const {
    if (offset >= phase_->bytes) return;
    const u64 bytes = phase_->bytes - offset < most ? phase_->bytes - offset : most;
    const Turn t = *ring.entry(turn);
    const Names names = this->names();
    if (t.check != 0) {
      pattern::Identity id = names(t.before, t.slot);
      id.address += offset;
      const u64 from = arrival_slot(t.before, t.slot) * names.stride;
      const u8* const at = static_cast<const u8*>(target_) + from;
      fetch(target_mirror_, from + offset, bytes);
      const auto worst = payload::check(warp, at + offset, bytes, id, others(names, newest));
      if (worst.verdict != pattern::Verdict::ok)
        found(turn, worst.verdict, worst.address - id.address + offset);
      warp.sync();
    }
    if (turn >= q_->count || t.last != 0) return;
    const bool requests = phase_->role == Role::initiator;
    const u64 index = requests ? turn : turn + ahead();
    pattern::Identity id = names(index, t.slot);
    id.address += offset;
    const u64 to = requests ? t.slot : target_slot(index, t.slot);
    if (requests && source_ != nullptr) {
      payload::fill(warp, source_ + t.slot * names.stride + offset, bytes, id);
      store(source_mirror_, t.slot * names.stride + offset, bytes);
    }
    if (target_ != nullptr) {
      payload::poison(warp, target_ + to * names.stride + offset, bytes, id);
      store(target_mirror_, to * names.stride + offset, bytes);
    }
  }
  /// Where the payload of operation `index` begins, as verdicts name it.
  [[nodiscard]] DOORBELL_INLINE u64 address_of(u64 index, u32 slot) const {
    return is_atomic(phase_->op) ? first_address_ : identity(index, slot).address;
  }

  /// True when the word that atomics change holds what `done` of them leave.
  [[nodiscard]] DOORBELL_INLINE bool ended_right(u64 done) const {
    fetch(q_->remote_mirror, 0, kAtomicBytes);
    return load_word(q_->remote) == walk_.before(phase_->op, done);
  }

 private:
  /// The values from which the payloads of this queue are named. Loops take a copy, because the compiler
  /// loads members of the phase again after every store.
  struct Names {
    u64 seed, first_address, stride, generation;
    u32 slots;  ///< named_slots()
    u32 wrap;   ///< sequences start again after so many operations; 0: never
    [[nodiscard]] DOORBELL_INLINE pattern::Identity operator()(u64 index, u32 slot) const {
      if (slots != 0) slot = static_cast<u32>(index % slots);
      return {seed, first_address + slot * stride, generation + (wrap != 0 ? index % wrap : index)};
    }
  };
  [[nodiscard]] DOORBELL_INLINE Names names() const {
    // Slots that this process cannot reach (another process's, a device's) were filled once, before the
    // phase.
    const bool standing = phase_->op == Op::read && q_->remote == nullptr;
    return {.seed = phase_->seed,
            .first_address = first_address_,
            .stride = q_->stride,
            .generation = phase_->generation,
            .slots = named_slots(),
            .wrap = !standing                   ? 0
                    : phase_->target_slots != 0 ? phase_->target_slots
                                                : phase_->window};
  }
  /// The other data that a payload could be, while `newest` is the newest operation in use.
  [[nodiscard]] DOORBELL_INLINE payload::Others others(const Names& names, u64 newest) const {
    if (names.wrap != 0) newest = names.wrap - 1;  // all slots were filled before the first operation
    return {.buffers = named_slots() != 0 ? named_slots() : phase_->window,
            .step = names.stride,
            .first = first_address_,
            .origin = names.generation,
            .last_sequence = names.generation + newest};
  }
  /// The target slot that the data of operation `index` is in. Reads arrive in the slots of this loop's
  /// window.
  [[nodiscard]] DOORBELL_INLINE u64 arrival_slot(u64 index, u32 slot) const {
    const u32 slots = phase_->op == Op::read ? 0 : phase_->target_slots;
    return slots != 0 ? index % slots : slot;
  }
  /// How far ahead of its receives a responder marks targets: where data does not wait for a receive, the
  /// initiator may write to these slots next.
  [[nodiscard]] DOORBELL_INLINE u64 ahead() const {
    return phase_->target_slots != 0 ? phase_->peer_window : 0;
  }
  // Mirrors need the data before the checks, and give behind them what is ready for the device.
  DOORBELL_INLINE static void fetch([[maybe_unused]] Mirror* mirror, [[maybe_unused]] u64 offset,
                                    [[maybe_unused]] u64 bytes) {
#if !defined(DOORBELL_ON_GPU)
    if (mirror != nullptr) mirror->fetch({offset, bytes});
#endif
  }
  DOORBELL_INLINE static void store([[maybe_unused]] Mirror* mirror, [[maybe_unused]] u64 offset,
                                    [[maybe_unused]] u64 bytes) {
#if !defined(DOORBELL_ON_GPU)
    if (mirror != nullptr) mirror->store({offset, bytes});
#endif
  }
  template <class SlotOf>
  DOORBELL_INLINE void fetch_wanted([[maybe_unused]] u64 first, [[maybe_unused]] u32 n,
                                    [[maybe_unused]] u64 wanted, [[maybe_unused]] SlotOf slot_of) const {
#if !defined(DOORBELL_ON_GPU)
    const bool atomic = is_atomic(phase_->op);
    Mirror* const mirror = atomic ? q_->local_mirror : target_mirror_;
    if (mirror == nullptr || phase_->bytes == 0) return;
    MirrorSlots slots(q_->stride, phase_->bytes);
    for (u32 i = 0; i < n; ++i)
      if ((wanted >> i & 1) != 0) slots.add(atomic ? slot_of(i) : arrival_slot(first + i, slot_of(i)));
    mirror->fetch(slots.ranges());
#endif
  }
  template <class SlotOf>
  DOORBELL_INLINE void store_ready([[maybe_unused]] u64 first, [[maybe_unused]] u32 n,
                                   [[maybe_unused]] SlotOf slot_of) const {
#if !defined(DOORBELL_ON_GPU)
    const auto put = [&](Mirror* mirror, auto slot) {
      if (mirror == nullptr || phase_->bytes == 0) return;
      MirrorSlots slots(q_->stride, phase_->bytes);
      for (u32 i = 0; i < n; ++i) slots.add(slot(i));
      mirror->store(slots.ranges());
    };
    if (is_atomic(phase_->op)) {
      put(q_->local_mirror, slot_of);
    } else if (phase_->role == Role::initiator) {
      put(source_mirror_, slot_of);
      put(target_mirror_, slot_of);
    } else {
      put(target_mirror_, [&](u32 i) { return target_slot(first + ahead() + i, slot_of(i)); });
    }
#endif
  }
  template <class SlotOf>
  DOORBELL_INLINE void make_ready(const Warp& warp, u64 first, u32 n, SlotOf slot_of) const {
    if (phase_->role == Role::initiator) prepare(warp, first, n, slot_of);
    else poison(warp, first + ahead(), n, slot_of);
  }
  /// The number of slots that name the payloads, if these are not the slots of this loop's window; else 0.
  [[nodiscard]] DOORBELL_INLINE u32 named_slots() const {
    return phase_->target_slots != 0 ? phase_->target_slots : phase_->peer_window;
  }
  [[nodiscard]] DOORBELL_INLINE u32 target_slot(u64 index, u32 slot) const {
    return phase_->target_slots != 0 ? static_cast<u32>(index % phase_->target_slots) : slot;
  }
  template <class SlotOf, class Found>
  DOORBELL_INLINE void check_atomics(const Warp& warp, u64 first, u32 n, u64 wanted, SlotOf slot_of,
                                     Found found) const {
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const u32 i = base + warp.lane();
      bool wrong = false;
      bool untouched = false;
      if (i < n && (wanted >> i & 1) != 0) {
        const u64 seen = load_word(q_->local + slot_of(i) * q_->stride);
        const u64 want = walk_.before(phase_->op, first + i);
        wrong = seen != want;
        untouched = seen == ~want;
      }
      const u64 missing = warp.ballot(untouched);
      u64 mask = warp.ballot(wrong);
      for (; mask != 0; mask &= mask - 1) {
        const u32 lane = lowest_bit(mask);
        found(base + lane, (missing >> lane & 1) != 0 ? pattern::Verdict::missing : pattern::Verdict::corrupt,
              first_address_);
      }
    }
  }

  const OpPhase* phase_;
  const OpQueue* q_;
  AtomicWalk walk_;
  u8* source_ = nullptr;
  u8* target_ = nullptr;
  Mirror* source_mirror_ = nullptr;
  Mirror* target_mirror_ = nullptr;
  u64 first_address_ = 0;
};

}  // namespace doorbell::rma
