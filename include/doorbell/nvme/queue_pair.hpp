// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One NVMe submission and completion queue, from the initiator's side: post, ring, poll. The same
// source runs on a CPU thread (OneLane) and on a GPU warp (GpuWarp).
//
// Thread rule: one thread or one warp owns a QueuePair and alone touches its queues. Every call is
// collective: all lanes make it together with the same arguments unless said otherwise.
#pragma once

#include <doorbell/nvme/wire.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::nvme {

/// Where a queue pair lies, in addresses that the initiator can use. Plain data: passed to kernels.
/// The queues are zeroed before the controller creates them; both rings have `entries` entries.
struct QueuePairMemory {
  Word16* sq = nullptr;              ///< entries * 4 words of 16 bytes
  const Word16* cq = nullptr;        ///< `entries` words of 16 bytes
  u32* sq_doorbell = nullptr;        ///< the register of the tail
  u32* cq_doorbell = nullptr;        ///< the register of the head
  u32* sq_shadow = nullptr;          ///< Doorbell Buffer Config, or null: registers only
  u32* cq_shadow = nullptr;          ///< likewise
  const u32* sq_eventidx = nullptr;  ///< written by the controller: see register_write_needed()
  const u32* cq_eventidx = nullptr;  ///< likewise
  u32 entries = 0;                   ///< 2..65536
  u16 qid = 0;                       ///< from 1
};

/// A QueuePair's whole state: plain data, so that it can stay in memory between two kernels.
struct QueuePairState {
  QueuePairMemory memory;  ///< the queues themselves
  u32 sq_tail = 0;         ///< slot of the next command
  u32 sq_rung = 0;         ///< tail at the last doorbell
  u32 unfetched = 0;       ///< posted, not yet covered by an sq_head
  u32 cq_head = 0;         ///< slot of the next completion
  u32 cq_rung = 0;         ///< head at the last doorbell
  u32 cq_unrung = 0;       ///< completions taken since then
  u32 phase = 1;           ///< the first pass through zeroed memory writes 1
  u32 bad_sq_heads = 0;    ///< completions that broke the protocol: QueuePair::bad_sq_heads()
};

/// Does nothing: the hot path without sub-step timing.
struct NoProbe {
  static constexpr bool enabled = false;  ///< nothing of it is called
};

/// The initiator's side of one submission and one completion queue. The head of queue_pair.hpp has the rules.
template <class Warp>
class QueuePair {
 public:
  /// Plain data that a kernel leaves for the next one.
  using State = QueuePairState;
  /// Over fresh queues: zeroed, nothing posted.
  DOORBELL_INLINE explicit QueuePair(const QueuePairMemory& memory) { s_.memory = memory; }
  /// Goes on where another QueuePair on the same queues stopped.
  DOORBELL_INLINE explicit QueuePair(const QueuePairState& state) : s_(state) {}
  /// Where another QueuePair on the same queues may go on.
  [[nodiscard]] DOORBELL_INLINE const QueuePairState& state() const { return s_; }

  /// Entries that post() may write now: a queue of N holds N - 1, and the controller has said by
  /// sq_head how many it has fetched.
  [[nodiscard]] DOORBELL_INLINE u32 room() const { return s_.memory.entries - 1 - s_.unfetched; }

  /// Writes `n` <= room() entries behind the tail; build(i) makes entry i and must give every lane that
  /// asks for the same i the same entry. Nothing is visible to the controller before ring().
  ///
  /// Four lanes write one 64-byte entry, so a warp's store covers whole entries back to back. All lanes
  /// call build together, so it may be collective; some may ask for an i >= n, whose entry is dropped.
  template <class Build>
  DOORBELL_INLINE void post(const Warp& warp, u32 n, Build build) {
    NoProbe none;
    post(warp, n, build, none);
  }
  /// The same with a Probe that times the steps of each entry: where its `enabled` is true, built() and
  /// enqueued() are called before and after each store.
  template <class Build, class Probe>
  DOORBELL_INLINE void post(const Warp& warp, u32 n, Build build, Probe& probe) {
    if constexpr (Warp::size < kSqeParts) {
      for (u32 i = 0; i < n; ++i) {
        const Sqe e = build(i);
        if constexpr (Probe::enabled) probe.built();
        Word16* at = s_.memory.sq + static_cast<u64>(slot_after(s_.sq_tail, i)) * kSqeParts;
        for (u32 p = 0; p < kSqeParts; ++p) store16(at + p, sqe_part(e, p));
        if constexpr (Probe::enabled) probe.enqueued();
      }
    } else {
      const u32 part = warp.lane() % kSqeParts;
      DOORBELL_NO_UNROLL
      for (u32 done = 0; done < n; done += Warp::size) {
        DOORBELL_UNROLL
        for (u32 round = 0; round < kSqeParts; ++round) {
          const u32 base = done + round * (Warp::size / kSqeParts);
          if (base < n) {
            const u32 i = base + warp.lane() / kSqeParts;
            const Word16 mine = sqe_part(build(i), part);
            if constexpr (Probe::enabled) probe.built();
            if (i < n) store16(m().sq + static_cast<u64>(slot_after(s_.sq_tail, i)) * kSqeParts + part, mine);
            if constexpr (Probe::enabled) probe.enqueued();
          }
        }
      }
    }
    s_.sq_tail = slot_after(s_.sq_tail, n);
    s_.unfetched += n;
  }

  /// post() of the single entry `e`, the same on every lane, by a warp: no lane has to be asked for anything.
  template <class Probe>
  DOORBELL_INLINE void post_one(const Warp& warp, const Sqe& e, Probe& probe) {
    static_assert(Warp::size >= kSqeParts);
    const u32 part = warp.lane() % kSqeParts;
    const Word16 mine = sqe_part(e, part);
    if constexpr (Probe::enabled) probe.built();
    if (warp.lane() < kSqeParts) store16(m().sq + static_cast<u64>(s_.sq_tail) * kSqeParts + part, mine);
    if constexpr (Probe::enabled) probe.enqueued();
    s_.sq_tail = slot_after(s_.sq_tail, 1);
    ++s_.unfetched;
  }

  /// Announces to the controller everything posted so far: one release, one doorbell. Returns how many
  /// register writes that took (0 or 1 with shadow doorbells, else 1), the same on every lane.
  DOORBELL_INLINE u32 ring(const Warp& warp) {
    // The sync orders every lane's entry stores before lane 0's release of the tail, which orders
    // them before the controller's fetch.
    warp.sync();
    u32 writes = 1;
    if (s_.memory.sq_shadow == nullptr) {
      if (warp.lane() == 0) store_release(s_.memory.sq_doorbell, s_.sq_tail);
    } else {
      writes = ring_shadow(warp, s_.memory.sq_shadow, s_.memory.sq_eventidx, s_.memory.sq_doorbell,
                           s_.sq_tail, s_.sq_rung);
    }
    s_.sq_rung = s_.sq_tail;
    return writes;
  }

  /// A poll's outcome: lanes 0..count-1 each hold one new completion, in queue order.
  struct Polled {
    u32 count = 0;  ///< 0: nothing new
    Cqe mine;       ///< this lane's; meaningless on the others
  };

  /// Looks at the next entries, one a lane, and takes the new ones. Does not wait.
  ///
  /// `expected` is how many completions may be due. A warp that expects more than one a lane loads the
  /// entries behind these at the same time (one way across PCIe for all) and later polls use them.
  [[nodiscard]] DOORBELL_INLINE Polled poll(const Warp& warp, u32 expected = 1) {
    const u32 lanes = Warp::size < s_.memory.entries ? Warp::size : s_.memory.entries;
    Polled p;
    Word16 entry{};
    bool unordered = false;
    if (ahead_ > 0) {
      entry = next_[0];
      for (u32 i = 0; i + 1 < kAhead; ++i) next_[i] = next_[i + 1];
      --ahead_;
    } else if (const u32 groups = expected_groups(expected); groups > 0) {
      const Word16* const cq = m().cq;
      entry = load16_unordered(cq + slot_after(s_.cq_head, warp.lane()));
      DOORBELL_UNROLL
      for (u32 i = 0; i < kAhead; ++i)
        if (i < groups)
          next_[i] = load16_unordered(cq + slot_after(s_.cq_head, (i + 1) * Warp::size + warp.lane()));
      ahead_ = groups;
      unordered = true;
    } else if (warp.lane() < lanes) {
      // The acquire of the dword that carries the phase orders the rest of the entry, and the data
      // that the controller wrote before it, behind the phase test.
      entry = load16_acquire(m().cq + slot_after(s_.cq_head, warp.lane()));
    }
    const bool fresh = warp.lane() < lanes && phase_bit(entry) == expected_phase(warp.lane());
    p.mine = decode_cqe(entry);
    p.count = leading_run(warp.ballot(fresh));
    // Entries that were loaded ahead line up with the lanes only behind a full group.
    if (p.count < Warp::size) ahead_ = 0;
    if (p.count == 0) return p;
    // Orders these entries, and those loaded ahead, before the data that the controller wrote first.
    if (unordered) acquire_after();
    s_.cq_head += p.count;
    if (s_.cq_head >= s_.memory.entries) {
      s_.cq_head -= s_.memory.entries;
      s_.phase ^= 1;
    }
    s_.cq_unrung += p.count;
    take_sq_head(warp.shfl(u32{p.mine.sq_head}, p.count - 1));
    return p;
  }

  /// Completion entries consumed since the last ring_cq().
  [[nodiscard]] DOORBELL_INLINE u32 cq_unrung() const { return s_.cq_unrung; }
  /// Completion entries that the controller may still write: what must cover the commands in flight.
  [[nodiscard]] DOORBELL_INLINE u32 cq_room() const { return s_.memory.entries - 1 - s_.cq_unrung; }

  /// Gives consumed completion entries back. Relaxed on a register: the entries were read, not
  /// written, and their values are already in this thread's hands (the phase test depends on them).
  DOORBELL_INLINE u32 ring_cq(const Warp& warp) {
    warp.sync();  // every lane's read of an entry comes before the controller may overwrite it
    u32 writes = 1;
    if (s_.memory.cq_shadow == nullptr) {
      if (warp.lane() == 0) {
#if defined(DOORBELL_ON_GPU)
        store_relaxed(s_.memory.cq_doorbell, s_.cq_head);
#else
        // Free on x86, and it lets a race detector see the order between the read and the overwrite.
        store_release(s_.memory.cq_doorbell, s_.cq_head);
#endif
      }
    } else {
      writes = ring_shadow(warp, s_.memory.cq_shadow, s_.memory.cq_eventidx, s_.memory.cq_doorbell,
                           s_.cq_head, s_.cq_rung);
    }
    s_.cq_rung = s_.cq_head;
    s_.cq_unrung = 0;
    return writes;
  }

  /// Of both queues.
  [[nodiscard]] DOORBELL_INLINE u16 qid() const {
    return s_.memory.qid;
  }
  /// Of each queue.
  [[nodiscard]] DOORBELL_INLINE u32 entries() const {
    return s_.memory.entries;
  }
  /// Completions whose sq_head lay outside what was posted: a controller that breaks the protocol.
  [[nodiscard]] DOORBELL_INLINE u32 bad_sq_heads() const {
    return s_.bad_sq_heads;
  }

 private:
  [[nodiscard]] DOORBELL_INLINE u32 slot_after(u32 slot, u32 n) const {
    const u32 at = slot + n;
    return at >= s_.memory.entries ? at - s_.memory.entries : at;
  }

  DOORBELL_INLINE void take_sq_head(u32 head) {
    const u32 left = s_.sq_tail >= head ? s_.sq_tail - head : s_.sq_tail + s_.memory.entries - head;
    if (head >= s_.memory.entries || left > s_.unfetched) {
      ++s_.bad_sq_heads;
      return;
    }
    s_.unfetched = left;
  }

  DOORBELL_INLINE static u32 ring_shadow(const Warp& warp, u32* shadow, const u32* eventidx, u32* reg,
                                         u32 now, u32 old) {
    u32 needed = 0;
    if (warp.lane() == 0) {
      // Store the shadow, then load the event index, in that order: the controller does the opposite
      // before it sleeps, so at least one of the two sees the other.
      const u32 event = store_then_load(shadow, now, eventidx);
      needed = register_write_needed(static_cast<u16>(event), static_cast<u16>(now), static_cast<u16>(old))
                   ? 1
                   : 0;
      if (needed != 0) store_release(reg, now);
    }
    return warp.shfl(needed, 0);
  }

  // Groups of entries that one poll loads beyond the first: enough for 128 completions in one round trip.
  static constexpr u32 kAhead = Warp::size >= 8 ? 128 / Warp::size - 1 : 0;

  [[nodiscard]] DOORBELL_INLINE const QueuePairMemory& m() const {
    return s_.memory;
  }
  [[nodiscard]] DOORBELL_INLINE static u32 phase_bit(const Word16& entry) {
    return entry.w[3] >> 16 & 1;
  }
  /// The phase tag of a new entry `lane` entries behind the head.
  [[nodiscard]] DOORBELL_INLINE u32 expected_phase(u32 lane) const {
    return s_.cq_head + lane >= m().entries ? s_.phase ^ 1 : s_.phase;
  }
  /// Whole groups beyond the first among `expected` entries that do not reach round to the head.
  [[nodiscard]] DOORBELL_INLINE u32 expected_groups(u32 expected) const {
    const u32 most = expected < m().entries ? expected : m().entries;
    const u32 groups = most / Warp::size;
    if constexpr (kAhead == 0) return 0;
    return groups <= 1 ? 0 : groups - 1 < kAhead ? groups - 1 : kAhead;
  }

  QueuePairState s_;
  u32 ahead_ = 0;  // groups in next_; each holds the entry that is this lane's after that many full groups
  Word16 next_[kAhead > 0 ? kAhead : 1] = {};
};

}  // namespace doorbell::nvme
