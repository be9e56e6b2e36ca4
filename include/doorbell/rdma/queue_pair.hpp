// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An RDMA queue pair from the initiator's side: post, ring, poll, for any vendor's wire format. The same
// source runs on a CPU thread (OneLane) and on a GPU warp (GpuWarp).
//
// Thread rule: one thread or one warp owns a QueuePair, and no other touches its queues. Every call is
// collective: all lanes make it together, with the same arguments unless a comment says otherwise.
#pragma once

#include <doorbell/rdma/format.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::rdma {

/// The positions and counts of a QueuePair.
struct QueuePairProgress {
  RingPosition sq;             ///< where the next request goes
  RingPosition rq;             ///< where the next receive goes
  RingPosition cq;             ///< the next completion of a request
  RingPosition recv_cq;        ///< the next completion of a receive
  u32 cq_unrung = 0;           ///< completions taken, not given back yet
  u32 recv_cq_unrung = 0;      ///< likewise
  u32 completed = 0;           ///< requests, modulo 2^32 like sq.serial
  u32 freed = 0;               ///< ring units given back, like sq.running
  u32 last_mark = 0;           ///< of the last completion, for formats that count requests
  u32 signalled = 0;           ///< signalled requests posted
  u32 answered = 0;            ///< of the signalled requests, those up to the last completion
  u32 receives_completed = 0;  ///< like rq.serial
  u64 sq_word = 0;             ///< WireFormat::sq_doorbell_word() of the last request
  u32 duplicated = 0;          ///< QueuePair::duplicated()
  u32 skipped = 0;             ///< QueuePair::skipped()
  u32 protocol = 0;            ///< QueuePair::protocol()
};

/// A QueuePair's whole state: plain data, so that it can stay in memory between two kernels.
struct QueuePairState {
  QueuePairMemory memory;      ///< where the queues lie; stays as it is
  QueuePairProgress progress;  ///< changes with every call
};

/// The state of a queue pair whose rings have just been created or reset.
[[nodiscard]] DOORBELL_INLINE QueuePairState initial_state(const QueuePairMemory& m) {
  QueuePairState s;
  s.memory = m;
  s.progress.sq.units = m.sq_units;
  s.progress.rq.units = m.rq_entries;
  s.progress.cq.units = m.cq_entries;
  s.progress.recv_cq.units = m.recv_cq_entries;
  return s;
}

/// The initiator's side of one queue pair, in the vendor's format F. The head of queue_pair.hpp has the
/// rules; RemoteOperations has puts and gets on top of it.
template <class Warp, WireFormat F>
class QueuePair {
 public:
  using State = QueuePairState;  ///< what a kernel leaves for the next one
  using Format = F;              ///< the vendor's

  /// Continues from the state of another QueuePair on the same queues, or from initial_state().
  /// `state.memory` must outlive this object; a kernel keeps it in shared memory, where it takes no
  /// registers.
  DOORBELL_INLINE explicit QueuePair(const QueuePairState& state)
      : memory_(&state.memory), s_(state.progress) {}
  explicit QueuePair(QueuePairState&&) = delete;
  /// Where another QueuePair on the same queues may go on.
  [[nodiscard]] DOORBELL_INLINE QueuePairState state() const { return {*memory_, s_}; }
  /// Combines the states of two QueuePairs on the same queues: one sent and the other received.
  DOORBELL_INLINE static void take_receives(QueuePairState& into, const QueuePairState& from) {
    into.progress.rq = from.progress.rq;
    into.progress.recv_cq = from.progress.recv_cq;
    into.progress.recv_cq_unrung = from.progress.recv_cq_unrung;
    into.progress.receives_completed = from.progress.receives_completed;
  }

  /// Requests that post() may write now.
  [[nodiscard]] DOORBELL_INLINE u32 room() const { return m().sq_requests - (s_.sq.serial - s_.completed); }
  /// Receives that post_receives() may write now.
  [[nodiscard]] DOORBELL_INLINE u32 receive_room() const {
    return m().rq_entries - 1 - (s_.rq.serial - s_.receives_completed);
  }
  /// @name Requests and receives, posted and finished, modulo 2^32
  /// @{
  [[nodiscard]] DOORBELL_INLINE u32 posted() const { return s_.sq.serial; }
  [[nodiscard]] DOORBELL_INLINE u32 completed() const { return s_.completed; }
  [[nodiscard]] DOORBELL_INLINE u32 receives_posted() const { return s_.rq.serial; }
  [[nodiscard]] DOORBELL_INLINE u32 receives_completed() const { return s_.receives_completed; }
  /// @}
  /// @name Errors of the device; a correct one keeps all three at 0
  /// @{

  /// Completions that came twice.
  [[nodiscard]] DOORBELL_INLINE u32 duplicated() const { return s_.duplicated; }
  /// Signalled requests without a completion although a later request has one.
  [[nodiscard]] DOORBELL_INLINE u32 skipped() const { return s_.skipped; }
  /// Completions without a posted request.
  [[nodiscard]] DOORBELL_INLINE u32 protocol() const { return s_.protocol; }
  /// @}
  /// The most bytes that a request on this queue may carry inlined.
  [[nodiscard]] DOORBELL_INLINE u32 max_inline() const {
    if constexpr (F::kMaxInline == 0) return 0;
    else return m().max_inline < F::kMaxInline ? m().max_inline : F::kMaxInline;
  }

  /// Writes `n` <= room() requests behind the last one. build(i) makes request i. All requests take the same
  /// number of ring units (same kind, same inlined length). The device sees them after ring().
  ///
  /// The lanes divide the 16-byte parts of all requests among them, so a warp's store covers whole WQEs
  /// without gaps. All lanes call build together, so build may be collective; it may be called several times
  /// with one i.
  template <class Build>
  DOORBELL_INLINE void post(const Warp& warp, u32 n, Build build) {
    if (n == 0) return;
    // Read once, because the compiler reads memory again after every store to the ring.
    const QueuePairMemory memory = m();
    const WorkRequest last = build(n - 1);
    const u32 units = F::units(last);
    const u32 parts = F::parts(last);
    const u32 packets = packets_of(last.bytes, memory.mtu);
    if (cq_space(memory.cq_entries, s_.cq_unrung, memory.sq_requests) < s_.sq.serial - s_.completed + n)
      ring_cq(warp);

    const u32 ring_parts = memory.sq_units * F::kUnitParts;
    // A round needs no division: this lane's next part is `whole` requests and `rest` parts further on.
    const u32 whole = Warp::size / parts, rest = Warp::size % parts;
    u32 i = warp.lane() / parts, p = warp.lane() % parts;
    // The rounds do not depend on each other: when they are unrolled, their arithmetic overlaps.
    DOORBELL_UNROLL_4
    for (u32 left = n * parts;; left -= Warp::size) {
      const bool mine = warp.lane() < left;
      const u32 of = mine ? i : n - 1;
      const RingPosition at = advance(s_.sq, of, units, packets);
      const Word16 part = F::part(build(of), at, memory, p);
      u32 place = at.slot * F::kUnitParts + p;
      if (place >= ring_parts) place -= ring_parts;
      if (mine) store16(memory.sq + place, part);
      if (left <= Warp::size) break;
      i += whole;
      p += rest;
      if (p >= parts) {
        p -= parts;
        ++i;
      }
    }
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const bool mine = base + warp.lane() < n;
      const u32 of = mine ? base + warp.lane() : n - 1;
      const WorkRequest wr = build(of);
      const RingPosition at = advance(s_.sq, of, units, packets);
      const u64 signalled = warp.ballot(mine && wr.signalled);
      if (mine) {
        track(memory, at, wr, units, s_.signalled + rank_in(warp, signalled));
        note_in_table(memory, at, wr);
      }
      s_.signalled += count_bits(signalled);
    }
    s_.sq_word = F::sq_doorbell_word(last, advance(s_.sq, n - 1, units, packets), memory);
    s_.sq = advance(s_.sq, n, units, packets);
  }

  /// post() of the one request `wr`, the same on every lane, and ring(): one round or few, no division, and
  /// what only this side reads is written while the device works. `between` is called before the doorbell.
  template <class Between>
  DOORBELL_INLINE u32 post_one(const Warp& warp, const WorkRequest& wr, Between between) {
    const QueuePairMemory memory = m();  // as in post()
    const u32 units = F::units(wr);
    const u32 parts = F::parts(wr);
    if (cq_space(memory.cq_entries, s_.cq_unrung, memory.sq_requests) < s_.sq.serial - s_.completed + 1)
      ring_cq(warp);
    const u32 ring_parts = memory.sq_units * F::kUnitParts;
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < parts; base += Warp::size) {
      const u32 p = base + warp.lane();
      const Word16 part = F::part(wr, s_.sq, memory, p < parts ? p : 0);
      u32 place = s_.sq.slot * F::kUnitParts + p;
      if (place >= ring_parts) place -= ring_parts;
      if (p < parts) store16(memory.sq + place, part);
    }
    if (warp.lane() == 0) note_in_table(memory, s_.sq, wr);
    s_.sq_word = F::sq_doorbell_word(wr, s_.sq, memory);
    const RingPosition at = s_.sq;
    s_.sq = advance(at, 1, units, packets_of(wr.bytes, memory.mtu));
    between();
    const u32 writes = ring(warp);
    if (warp.lane() == 0) track(memory, at, wr, units, s_.signalled);
    s_.signalled += wr.signalled ? 1 : 0;
    return writes;
  }

  /// Rings one doorbell for everything posted so far. Returns the number of register writes.
  DOORBELL_INLINE u32 ring(const Warp& warp) {
    const QueuePairMemory memory = m();  // read before the first store, not between them
    // The sync orders every lane's WQE stores before lane 0's first releasing store, which orders them
    // before the device's fetch.
    warp.sync();
    if (warp.lane() == 0) F::ring_sq(memory, s_.sq, s_.sq_word);
    return 1;
  }

  /// Writes `n` <= receive_room() receives; the device sees them after ring_receives().
  template <class Build>
  DOORBELL_INLINE void post_receives(const Warp& warp, u32 n, Build build) {
    if (n == 0) return;
    if (cq_space(m().recv_cq_entries, s_.recv_cq_unrung, m().rq_entries) <
        s_.rq.serial - s_.receives_completed + n)
      ring_receive_cq(warp);
    const u32 total = n * F::kReceiveParts;
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < total; base += Warp::size) {
      const u32 k = base + warp.lane();
      const u32 i = k < total ? k / F::kReceiveParts : n - 1;
      const u32 p = k < total ? k - i * F::kReceiveParts : 0;
      const RingPosition at = advance(s_.rq, i, 1, 0);
      const Word16 part = F::receive_part(build(i), at, m(), p);
      if (k < total) store16(m().rq + u64{at.slot} * F::kReceiveParts + p, part);
    }
    s_.rq = advance(s_.rq, n, 1, 0);
  }
  /// Rings one doorbell for all receives posted so far. Returns the number of register writes.
  DOORBELL_INLINE u32 ring_receives(const Warp& warp) {
    warp.sync();  // as in ring()
    if (warp.lane() == 0) F::ring_rq(m(), s_.rq);
    return 1;
  }

  /// A poll's outcome: lanes 0..count-1 each hold one new completion, in queue order.
  struct Polled {
    u32 count = 0;    ///< 0: nothing new
    Completion mine;  ///< `ignore` is set if it carries no news
    u32 serial = 0;   ///< requests (receives) finished up to and including this one, modulo 2^32
  };

  /// Looks at most at the next `expected` entries, one for each lane, and takes the new ones; it may take
  /// fewer than there are. Does not wait. If the queue is in host memory, a GPU reads every entry over PCIe
  /// separately, so poll() does not look at entries that cannot have been written.
  [[nodiscard]] DOORBELL_INLINE Polled poll(const Warp& warp, u32 expected = 1) {
    const RingPosition first = s_.cq;
    // Requests that asked for no completion may have failed: their entries come one after the other.
    const u32 due = s_.signalled - s_.answered;
    if (due < expected) expected = due;
    const bool early = kEarly && expected <= kEarlyAtMost && first.pass != 0;
    Polled p =
        early ? take_early(warp) : take<F::kRequestInPartB>(warp, m().cq, m().cq_record, s_.cq, expected);
    if (p.count == 0) return p;
    if constexpr (kEarly) mark_taken(warp, first, p.count);
    s_.cq_unrung += p.count;
    if (p.count != 1 || s_.sq.serial - s_.completed != 1 || !account_last(warp, p)) account(warp, p);
    if (s_.cq_unrung > m().cq_entries / 2) ring_cq(warp);
    return p;
  }

  /// poll() for receives.
  [[nodiscard]] DOORBELL_INLINE Polled poll_receives(const Warp& warp, u32 expected = 1) {
    Polled p = take<false>(warp, m().recv_cq, m().recv_cq_record, s_.recv_cq, expected);
    if (p.count == 0) return p;
    s_.recv_cq_unrung += p.count;
    const bool here = warp.lane() < p.count;
    const u64 flush = warp.ballot(here && p.mine.flush_all);
    const bool counts = here && !p.mine.ignore && !p.mine.flush_all;
    const u64 news = warp.ballot(counts);
    p.serial = s_.receives_completed + rank_in(warp, news) + (counts ? 1 : 0);
    // Receives complete in order: an entry for another receive came twice, or receives were skipped.
    const u32 due = p.serial - 1 + F::kFirstReceiveMark;
    const bool odd = counts && ((p.mine.mark ^ due) & (m().rq_entries - 1)) != 0;
    s_.protocol += count_bits(warp.ballot(odd));
    s_.receives_completed += count_bits(news);
    if (flush != 0) s_.receives_completed = s_.rq.serial;
    if (here && p.mine.flush_all) p.serial = s_.rq.serial;
    if (s_.recv_cq_unrung > m().recv_cq_entries / 2) ring_receive_cq(warp);
    return p;
  }

  /// Gives consumed completion entries back.
  DOORBELL_INLINE void ring_cq(const Warp& warp) {
    give_back(warp, m().cq_record, m().cq_doorbell, s_.cq, m().cqn);
    s_.cq_unrung = 0;
  }
  /// The same of the receive CQ. poll() and poll_receives() call both when half of a CQ has been taken.
  DOORBELL_INLINE void ring_receive_cq(const Warp& warp) {
    give_back(warp, m().recv_cq_record, m().recv_cq_doorbell, s_.recv_cq, m().recv_cqn);
    s_.recv_cq_unrung = 0;
  }

 private:
  [[nodiscard]] DOORBELL_INLINE const QueuePairMemory& m() const { return *memory_; }

  /// Entries that completions may still take before some must be given back. If positions are slot numbers
  /// only, one entry stays free. Of the entries beyond the queue's requests, half is kept for completions
  /// that come twice.
  [[nodiscard]] DOORBELL_INLINE static u32 cq_space(u32 entries, u32 unrung, u32 requests) {
    const u32 usable = entries - 1;
    const u32 kept = usable > requests ? (usable - requests) / 2 : 0;
    return usable > unrung + kept ? usable - unrung - kept : 0;
  }

  DOORBELL_INLINE static void give_back(const Warp& warp, u32* record, u64* doorbell, const RingPosition& at,
                                        u32 cqn) {
    // The sync orders every lane's reads of entries, and its stores that overwrite them, before lane 0's
    // release; the release orders them before the device's next entries in the same places.
    warp.sync();
    if (warp.lane() == 0) F::ring_cq(record, doorbell, at, cqn);
  }

  /// Records what the mark of the request at `at` finishes; `signalled` signalled requests precede it. One
  /// lane.
  DOORBELL_INLINE static void track(const QueuePairMemory& m, const RingPosition& at, const WorkRequest& wr,
                                    u32 units, u32 signalled) {
    const u32 key = F::kMark == Mark::unit ? at.running : at.serial;
    store16(m.track + (key & (m.track_entries - 1)),
            {{at.serial + 1, at.running + units, signalled, wr.signalled ? 1u : 0u}});
  }
  /// Writes the entry that the device looks up beside the WQE, in formats with such a table. One lane.
  DOORBELL_INLINE static void note_in_table(const QueuePairMemory& m, const RingPosition& at,
                                            const WorkRequest& wr) {
    if constexpr (F::kHasTable) m.sq_table[F::table_index(at, m)] = F::table_entry(wr, at, m);
  }

  [[nodiscard]] DOORBELL_INLINE static Completion decode(const Word16* entry, const Word16& a,
                                                         const Word16& b) {
    if constexpr (requires { F::kCqePartC; }) return F::decode_cqe(a, b, load16(entry + F::kCqePartC));
    else return F::decode_cqe(a, b);
  }

  /// If only the next entry is awaited, a warp loads the whole entry together with the word that shows its
  /// arrival: one PCIe round trip instead of two or three. The other words of that load may be older. Each
  /// consumed entry is therefore overwritten, and a word that differs from the overwritten value is new. A
  /// format that needs part B alone gains too: a load of an entry that only the device has written since the
  /// last round takes 1 us longer (H100, mlx5, 2026-11-25: docs/history/performance-notes.md).
  static constexpr bool kEarly = Warp::size > 1;
  static constexpr u32 kTaken = ~0u;
  /// Up to so many polls of one entry and one round trip each are no slower than one poll of several entries,
  /// which takes two or three round trips.
  static constexpr u32 kEarlyAtMost = 3;
  [[nodiscard]] DOORBELL_INLINE static bool came_since(const Word16& w) {
    return w.w[0] != kTaken && w.w[1] != kTaken && w.w[2] != kTaken && w.w[3] != kTaken;
  }
  DOORBELL_INLINE void mark_taken(const Warp& warp, const RingPosition& first, u32 count) {
    if (warp.lane() >= count) return;
    Word16* const entry = m().cq + u64{advance(first, warp.lane(), 1, 0).slot} * F::kCqeParts;
    store16(entry + F::kCqePartA, {{kTaken, kTaken, kTaken, kTaken}});
    // The word with the ownership bit, if the format has one, is not overwritten.
    if constexpr (F::kCqByIndex) store16(entry + F::kCqePartB, {{kTaken, kTaken, kTaken, kTaken}});
  }

  /// take() for one entry that was overwritten when it was last consumed. Each lane loads one part, because
  /// parts that are read together take one round trip, while a second read of one line waits for the first.
  [[nodiscard]] DOORBELL_INLINE Polled take_early(const Warp& warp) {
    const Word16* const entry = m().cq + u64{s_.cq.slot} * F::kCqeParts;
    const Word16* part = entry + (warp.lane() == 0 ? F::kCqePartA : F::kCqePartB);
    Word16 w{};
    // As in take(): the acquire of the word that shows the entry's arrival (the ownership bit or the device's
    // tail) orders the data, which the device wrote before it, before this load.
    if constexpr (F::kCqByIndex) {
      if (warp.lane() == 2) part = reinterpret_cast<const Word16*>(m().cq_record);
      if (warp.lane() < 3) w = load16_acquire<2>(part);
    } else if (warp.lane() < 2) {
      w = load16_acquire<F::kCqeOwnerWord>(part);
    }
    const auto of = [&](u32 lane) {
      return Word16{{warp.shfl(w.w[0], lane), warp.shfl(w.w[1], lane), warp.shfl(w.w[2], lane),
                     warp.shfl(w.w[3], lane)}};
    };
    const Word16 a = of(0), b = of(1);
    bool fresh = false;
    bool whole = came_since(a);
    if constexpr (F::kCqByIndex) {
      fresh = ((warp.shfl(w.w[2], 2) - s_.cq.running) & (2 * s_.cq.units - 1)) != 0;
      whole = whole && came_since(b);
    } else {
      fresh = F::cqe_valid(b, s_.cq.pass);
    }
    Polled p;
    if (!fresh) return p;
    p.mine = F::decode_cqe(a, b);
    if (!whole || p.mine.status != Status::ok) return take<false>(warp, m().cq, m().cq_record, s_.cq, 1);
    p.count = 1;
    s_.cq = advance(s_.cq, 1, 1, 0);
    return p;
  }

  /// Takes the run of new entries at `at`.
  template <bool PartBAlone>
  DOORBELL_INLINE static Polled take(const Warp& warp, const Word16* cq, const u32* record, RingPosition& at,
                                     u32 expected) {
    Polled p;
    u32 lanes = Warp::size < at.units ? Warp::size : at.units;
    if (expected < lanes) lanes = expected > 0 ? expected : 1;
    const RingPosition mine = advance(at, warp.lane() < lanes ? warp.lane() : 0, 1, 0);
    const Word16* const entry = cq + u64{mine.slot} * F::kCqeParts;
    bool fresh = false;
    Word16 b{};
    if constexpr (F::kCqByIndex) {
      // The acquire of the device's tail orders the entries before it behind this load.
      const u32 tail = warp.lane() == 0 ? load_acquire(record + 2) : 0;
      const u32 ready = (warp.shfl(tail, 0) - at.running) & (2 * at.units - 1);
      fresh = warp.lane() < lanes && warp.lane() < ready;
      if (fresh) b = load16(entry + F::kCqePartB);
    } else if (warp.lane() < lanes) {
      // The acquire of the word with the ownership bit orders what the device wrote before it, the rest of
      // the entry and the data, before the loads that follow the test of that bit.
      b = load16_acquire<F::kCqeOwnerWord>(entry + F::kCqePartB);
      fresh = F::cqe_valid(b, mine.pass);
    }
    p.count = leading_run(warp.ballot(fresh));
    if (p.count == 0) return p;
    if (warp.lane() < p.count) {
      Word16 a{};
      if constexpr (PartBAlone) {
        p.mine = decode(entry, a, b);
        // The half of part B without the ownership bit may be older than that bit: a GPU's 16-byte load of
        // host memory is atomic only in each half. That half holds only an error's code, so it is loaded
        // again only after an error.
        if (p.mine.status != Status::ok) p.mine = decode(entry, a, load16(entry + F::kCqePartB));
      } else {
        a = load16(entry + F::kCqePartA);
        p.mine = decode(entry, a, load16(entry + F::kCqePartB));
      }
    }
    at = advance(at, p.count, 1, 0);
    return p;
  }

  /// Finds which requests the marks in `p` finish, and counts them.
  DOORBELL_INLINE void account(const Warp& warp, Polled& p) {
    const bool here = warp.lane() < p.count && !p.mine.ignore;
    const u32 outstanding = s_.sq.serial - s_.completed;
    u32 ahead = 0;  // requests that this entry finishes beyond s_.completed
    Word16 found{};
    bool behind = false;
    bool known = false;
    if (here && p.mine.flush_all) {
      ahead = outstanding;
      found = {{s_.sq.serial, s_.sq.running, s_.signalled, 0}};
      known = true;
    } else if (here) {
      u32 key = 0;
      if constexpr (F::kMark == Mark::unit) {
        const u32 distance = (p.mine.mark - s_.freed) & 0xffff;
        key = s_.freed + distance;
        known = distance < s_.sq.running - s_.freed;
        behind = !known && distance >= 0x8000;
      } else {
        const u32 modulo = F::mark_modulo(m());  // 0: 2^32
        u32 distance = p.mine.mark - s_.last_mark;
        if (modulo != 0 && p.mine.mark < s_.last_mark) distance += modulo;
        key = s_.completed + distance - 1;
        known = distance >= 1 && distance <= outstanding;
        behind = !known && (distance == 0 || distance > (modulo != 0 ? modulo / 2 : 0x80000000u));
      }
      if (known) {
        found = load16(m().track + (key & (m().track_entries - 1)));
        ahead = found.w[0] - s_.completed;
        known = ahead >= 1 && ahead <= outstanding;
      }
    }
    u32 before = warp.shfl(known ? ahead : 0, warp.lane() == 0 ? 0 : warp.lane() - 1);
    if (warp.lane() == 0) before = 0;
    const bool news = known && ahead > before;
    // An entry for the end of the queue (flush_all) behind the last request finishes nothing; that is no
    // error.
    const bool twice = here && !news && (known || behind) && !p.mine.flush_all;
    const bool odd = here && !news && !known && !behind && !p.mine.flush_all;
    s_.duplicated += count_bits(warp.ballot(twice));
    s_.protocol += count_bits(warp.ballot(odd));
    if (here && !news) p.mine.ignore = true;
    p.serial = s_.completed + ahead;
    const u64 lanes = warp.ballot(news);
    if (lanes != 0) {
      const u32 last = highest_bit(lanes);
      const u64 answers = warp.ballot(news && found.w[3] != 0);
      const u32 signals = warp.shfl(found.w[2], last);  // signalled requests before the last one finished
      const u32 last_signal = warp.shfl(found.w[3], last);
      const bool flushed = warp.shfl(p.mine.flush_all ? 1u : 0u, last) != 0;
      if (!flushed) {
        const u32 due = signals + last_signal - s_.answered;
        s_.skipped += due - count_bits(answers);
      }
      s_.answered = signals + last_signal;
      s_.completed = warp.shfl(found.w[0], last);
      s_.freed = warp.shfl(found.w[1], last);
      if (!flushed) s_.last_mark = warp.shfl(p.mine.mark, last);
    }
  }

  /// account() for a single entry that finishes the single request in flight, about which everything is known
  /// without its track. Otherwise it changes nothing and returns false.
  [[nodiscard]] DOORBELL_INLINE bool account_last(const Warp& warp, Polled& p) {
    const u32 mark = warp.shfl(p.mine.mark, 0);
    bool due = !p.mine.ignore && !p.mine.flush_all;
    if constexpr (F::kMark == Mark::unit) {
      due = due && ((mark - s_.freed) & 0xffff) < s_.sq.running - s_.freed;
    } else {
      const u32 next = s_.last_mark + 1;
      const u32 modulo = F::mark_modulo(m());
      due = due && mark == (modulo != 0 && next >= modulo ? next - modulo : next);
    }
    // If a request that asked for no completion got one, account() counts it.
    due = due && s_.signalled - s_.answered == 1;
    if ((warp.ballot(due) & 1) == 0) return false;
    s_.answered = s_.signalled;
    s_.completed = s_.sq.serial;
    s_.freed = s_.sq.running;
    s_.last_mark = mark;
    p.serial = s_.completed;
    return true;
  }

  const QueuePairMemory* memory_;
  QueuePairProgress s_;
};

}  // namespace doorbell::rdma
