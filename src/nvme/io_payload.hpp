// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The data that each I/O of a loop carries: which blocks it is of, what writes send and what reads must find.
#pragma once

#include "loop/check_ring.hpp"
#include "loop/permutation.hpp"
#include "nvme/io_types.hpp"

namespace doorbell::nvme {

/// The place of I/O `index` in its pass over the queue's span. 64-bit division is slow on a GPU, and most
/// phases are one pass.
[[nodiscard]] DOORBELL_INLINE u64 index_in_pass(const IoQueue& q, u64 index) {
  return index < q.span ? index : index % q.span;
}
/// Of Permutation(q.span, order_seed), in which a random phase visits the positions of the queue.
[[nodiscard]] DOORBELL_INLINE u64 order_seed(const IoPhase& phase, const IoQueue& q) {
  return phase.seed ^ q.first;
}
/// The logical block that I/O `index` of a phase starts at. `order` is Permutation(q.span, order_seed(...)).
[[nodiscard]] DOORBELL_INLINE u64 lba_of_io(const IoPhase& phase, const IoQueue& q, const Permutation& order,
                                            u64 index) {
  const u64 at = index_in_pass(q, index);
  return phase.base_lba + (q.first + (phase.random ? order(at) : at)) * phase.blocks;
}

template <class Warp>
class IoPayload {
 public:
  /// `phase` and `queue` must outlive this object.
  DOORBELL_INLINE IoPayload(const IoPhase& phase, const IoQueue& queue)
      : phase_(&phase), q_(&queue), order_(queue.span, order_seed(phase, queue)) {}

  [[nodiscard]] DOORBELL_INLINE bool is_write() const { return phase_->op == IoOpcode::write; }
  [[nodiscard]] DOORBELL_INLINE u64 bytes() const { return u64{phase_->blocks} * phase_->lba_bytes; }

  /// The content of I/O `index`'s blocks, by the phase that wrote them; `known` is false where that is
  /// neither this phase nor the last write phase.
  struct Written {
    pattern::Identity id;
    bool known = true;
  };
  [[nodiscard]] DOORBELL_INLINE Written written(u64 index) const {
    Written w;
    w.id.seed = phase_->seed;
    w.id.address = lba_of_io(*phase_, *q_, order_, index) * phase_->lba_bytes;
    const u64 at = in_pass(index);
    if (is_write()) w.id.sequence = phase_->generation + (index < q_->span ? 0 : index / q_->span);
    else if (at < q_->written) w.id.sequence = q_->written_generation + (q_->written - 1 - at) / q_->span;
    else w.known = false;
    return w;
  }

  /// The unit at `address` by the earlier writes, and the byte until which the same holds, `end` at
  /// most.
  struct Earlier {
    pattern::Expect expect;
    u64 until;
  };
  [[nodiscard]] DOORBELL_INLINE Earlier earlier(u64 address, u64 end) const {
    Earlier e{{{phase_->seed, address, 0}, false}, end};
    bool found = by_earlier(q_->earlier, e);
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < q_->more_earlier_count && !found; ++i) found = by_earlier(q_->more_earlier[i], e);
    return e;
  }

  /// The first unit that I/O `index` has, or is to find; its sequence is 0 where that is not known.
  [[nodiscard]] DOORBELL_INLINE pattern::Identity due(u64 index) const {
    const Written w = written(index);
    return w.known ? w.id : earlier(w.id.address, w.id.address + bytes()).expect.id;
  }

  [[nodiscard]] DOORBELL_INLINE bool sampled(u64 index) const {
    return pattern::sampled(index, phase_->seed, phase_->verify_below);
  }
  [[nodiscard]] DOORBELL_INLINE bool write_was_refused(u64 index) const {
    const u64 bit = in_pass(index);
    return q_->unwritten != nullptr && bit < q_->unwritten_bits &&
           (q_->unwritten[bit / 32] >> (bit % 32) & 1) != 0;
  }
  /// One lane.
  DOORBELL_INLINE void note_refused_write(u64 index) const {
    const u64 bit = in_pass(index);
    if (q_->unwritten != nullptr && bit < q_->unwritten_bits) q_->unwritten[bit / 32] |= 1u << (bit % 32);
  }

  /// A Checker calls this function. It checks the reads that have ended in the slots of `n` turns, and makes
  /// the slots ready for I/Os `first` and on.
  template <class Found>
  DOORBELL_INLINE void turns(const Warp& warp, const CheckRing& ring, u64 first, u32 n, u64,
                             Found found) const {
    fetch_turns(ring, first, n);
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const u32 here = n - base < Warp::size ? n - base : Warp::size;
      Turn t;
      if (warp.lane() < here) t = *ring.entry(first + base + warp.lane());
      check_lanes(warp, first + base, warp.ballot(warp.lane() < here && t.check != 0), t, found);
      // Lanes have loaded what other lanes are about to overwrite.
      warp.sync();
      make_ready_lanes(warp, first + base, here, t);
    }
    store_turns(ring, first, n);
  }
  /// Bytes [offset, offset + most) of one turn's I/O.
  template <class Found>
  DOORBELL_INLINE void piece(const Warp& warp, const CheckRing& ring, u64 turn, u64 offset, u32 most, u64,
                             Found found) const {
    if (offset >= bytes()) return;
    const u64 here = bytes() - offset < most ? bytes() - offset : most;
    const Turn t = *ring.entry(turn);
    if (t.check != 0) {
      fetch(t.slot, offset, here);
      check(warp, turn, t, offset, here, found);
    }
    warp.sync();
    if (turn < q_->count) {
      make_ready(warp, turn, data(t.slot), offset, here);
      store(t.slot, offset, here);
    }
  }

 private:
  [[nodiscard]] DOORBELL_INLINE u8* data(u32 slot) const { return q_->data + slot * q_->stride; }
  [[nodiscard]] DOORBELL_INLINE u64 in_pass(u64 index) const { return index_in_pass(*q_, index); }

  // A mirror needs the data before the checks, and gives behind them what is ready for the device.
  DOORBELL_INLINE void fetch([[maybe_unused]] u32 slot, [[maybe_unused]] u64 offset,
                             [[maybe_unused]] u64 bytes) const {
#if !defined(DOORBELL_ON_GPU)
    if (q_->mirror != nullptr) q_->mirror->fetch({slot * q_->stride + offset, bytes});
#endif
  }
  DOORBELL_INLINE void store([[maybe_unused]] u32 slot, [[maybe_unused]] u64 offset,
                             [[maybe_unused]] u64 bytes) const {
#if !defined(DOORBELL_ON_GPU)
    if (q_->mirror != nullptr) q_->mirror->store({slot * q_->stride + offset, bytes});
#endif
  }
  DOORBELL_INLINE void fetch_turns([[maybe_unused]] const CheckRing& ring, [[maybe_unused]] u64 first,
                                   [[maybe_unused]] u32 n) const {
#if !defined(DOORBELL_ON_GPU)
    if (q_->mirror == nullptr) return;
    MirrorSlots slots(q_->stride, bytes());
    for (u32 i = 0; i < n; ++i)
      if (const Turn t = *ring.entry(first + i); t.check != 0) slots.add(t.slot);
    if (!slots.ranges().empty()) q_->mirror->fetch(slots.ranges());
#endif
  }
  DOORBELL_INLINE void store_turns([[maybe_unused]] const CheckRing& ring, [[maybe_unused]] u64 first,
                                   [[maybe_unused]] u32 n) const {
#if !defined(DOORBELL_ON_GPU)
    if (q_->mirror == nullptr) return;
    MirrorSlots slots(q_->stride, bytes());
    for (u32 i = 0; i < n && first + i < q_->count; ++i) slots.add(ring.entry(first + i)->slot);
    if (!slots.ranges().empty()) q_->mirror->store(slots.ranges());
#endif
  }

  /// Writes carry the pattern; a read's buffer is marked, so that data that never came is seen.
  DOORBELL_INLINE void make_ready(const Warp& warp, u64 index, u8* at, u64 offset, u64 bytes) const {
    if (!is_write()) return pattern::poison(warp, at + offset, bytes);
    pattern::Identity id = written(index).id;
    id.address += offset;
    pattern::fill(warp, at + offset, bytes, id);
  }

  /// Makes ready the slots of `n` turns, each of which is known to its lane.
  DOORBELL_INLINE void make_ready_lanes(const Warp& warp, u64 first, u32 n, const Turn& mine) const {
    if (first >= q_->count) return;
    if (q_->count - first < n) n = static_cast<u32>(q_->count - first);
    if (!is_write()) {
      // A lane marks its own slot, so that the stores of all slots are under way together.
      if (warp.lane() < n) pattern::poison(OneLane{}, data(mine.slot), bytes());
      return;
    }
    const pattern::Identity own = written(first + warp.lane()).id;
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < n; ++i)
      pattern::fill(warp, data(warp.shfl(mine.slot, i)), bytes(), of_lane(warp, own, i));
  }
  [[nodiscard]] DOORBELL_INLINE static pattern::Identity of_lane(const Warp& warp,
                                                                 const pattern::Identity& own, u32 lane) {
    return {own.seed, warp.shfl(own.address, lane), warp.shfl(own.sequence, lane)};
  }

  /// Checks the turns `first` + lane of the lanes in `lanes`. A warp compares I/Os of one unit several at a
  /// time, and looks closer only at those that differ.
  template <class Found>
  DOORBELL_INLINE void check_lanes(const Warp& warp, u64 first, u64 lanes, const Turn& mine,
                                   Found found) const {
    u64 closer = lanes;
    if (Warp::size > 1 && bytes() == pattern::kUnitBytes) {
      closer = 0;
      const Written own = written(mine.before);
      const u64 unknown = warp.ballot(!own.known);
      DOORBELL_NO_UNROLL
      while (lanes != 0) {
        const u32* units[pattern::kTogether] = {};
        pattern::Identity ids[pattern::kTogether];
        u64 group[pattern::kTogether];  // each one's lane, as a bit
        u32 wrong = 0;
        u32 n = 0;
        DOORBELL_UNROLL
        for (u32 i = 0; i < pattern::kTogether; ++i) {
          group[i] = lanes & (~lanes + 1);
          lanes &= lanes - 1;
          if (group[i] != 0) {
            const u32 from = lowest_bit(group[i]);
            units[i] = reinterpret_cast<const u32*>(data(warp.shfl(mine.slot, from)));
            ids[i] = of_lane(warp, own.id, from);
            if ((unknown & group[i]) != 0) wrong |= 1u << i;
            ++n;
          }
        }
        wrong |= pattern::differences(warp, units, ids, n);
        DOORBELL_UNROLL
        for (u32 i = 0; i < pattern::kTogether; ++i)
          if (warp.ballot((wrong >> i & 1) != 0) != 0) closer |= group[i];
      }
    }
    DOORBELL_NO_UNROLL
    for (; closer != 0; closer &= closer - 1) {
      const u32 from = lowest_bit(closer);
      const Turn t = {.before = warp.shfl(mine.before, from), .slot = warp.shfl(mine.slot, from)};
      check(warp, first + from, t, 0, bytes(), found);
    }
  }

  template <class Found>
  DOORBELL_INLINE void check(const Warp& warp, u64 turn, const Turn& t, u64 offset, u64 bytes,
                             Found found) const {
    const Written w = written(t.before);
    const u64 begin = w.id.address, end = begin + offset + bytes;
    // Units of which nothing is known are those of one write, if that is all that is known of the I/O.
    const bool one_write = !w.known && is_alone(begin);
    pattern::Checked worst;
    DOORBELL_NO_UNROLL
    for (u64 at = begin + offset; at < end;) {
      Earlier e{{w.id}, end};
      e.expect.id.address = at;
      if (!w.known) e = earlier(at, end);
      const u8* const units = data(t.slot) + (at - begin);
      if (one_write) {
        const pattern::Identity first = pattern::claimed(reinterpret_cast<const u32*>(data(t.slot)));
        e.expect.id.seed = first.seed;
        e.expect.id.sequence = first.sequence;
        e.expect.one_write = true;
      }
      const auto found_here = pattern::check(warp, units, e.until - at, e.expect);
      if (found_here.verdict > worst.verdict) worst = found_here;
      at = e.until;
    }
    if (worst.verdict != pattern::Verdict::ok) found(turn, worst.verdict, worst.address - begin);
  }

  /// True if no earlier write says of any part of the I/O at `begin` which units it holds.
  [[nodiscard]] DOORBELL_INLINE bool is_alone(u64 begin) const {
    const Earlier e = earlier(begin, begin + bytes());
    return !e.expect.written && e.until == begin + bytes();
  }
  /// True if `w` says what lies at e's address; else e holds no further than to where it might.
  [[nodiscard]] DOORBELL_INLINE static bool by_earlier(const EarlierWrite& w, Earlier& e) {
    pattern::Identity& id = e.expect.id;
    if (id.address >= w.bytes.end || e.until <= w.bytes.begin) return false;
    const bool inside = id.address >= w.bytes.begin;
    u64 sequence = 0;
    const bool covered = inside && w.covers(id.address, &sequence);
    u64 until = w.bytes.begin;
    if (inside) until = w.bytes.end < w.position_end(id.address) ? w.bytes.end : w.position_end(id.address);
    if (until < e.until) e.until = until;
    if (!covered) return false;
    e.expect.strict = true;
    e.expect.written = sequence != EarlierWrite::kAnySequence;
    if (e.expect.written) id = {w.seed, id.address, sequence};
    return true;
  }

  const IoPhase* phase_;
  const IoQueue* q_;
  Permutation order_;
};

}  // namespace doorbell::nvme
