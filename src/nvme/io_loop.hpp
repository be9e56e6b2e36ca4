// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sliding window that drives one queue pair: post a batch whenever the window has room, ring
// once, take whatever has completed, check it, free its slot. Compiled for a CPU thread and for a
// GPU warp; a Clock gives ticks (`now()`) and shared nanoseconds (`wall_ns()`).
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <type_traits>

#include "loop/check_ring.hpp"
#include "loop/lane_counters.hpp"
#include "loop/poll_pace.hpp"
#include "nvme/io_payload.hpp"
#include "nvme/io_types.hpp"

namespace doorbell::nvme {

/// Splits posting into building and enqueueing for --substep-timing.
template <class Clock>
struct TickProbe {
  static constexpr bool enabled = true;
  u64 last = 0;
  u64 build = 0;
  u64 enqueue = 0;
  DOORBELL_INLINE void built() { build += lap(); }
  DOORBELL_INLINE void enqueued() { enqueue += lap(); }
  DOORBELL_INLINE u64 lap() {
    const u64 t = Clock::now();
    const u64 d = t - last;
    last = t;
    return d;
  }
};

template <class Warp, class Clock, bool Substeps = false, LoopQueue<Warp> Queue = QueuePair<Warp>>
class IoLoop {
 public:
  /// `phase` and `queue` must outlive the loop. It posts from a copy: what an entry is built from would be
  /// loaded again after every store to a queue, which halves the rate of a GPU's warp. `state` is where the
  /// previous phase left the queue pair; state() hands it on. `scratch` is prepared here; its `state` must be
  /// zero before the first phase. `stats` receives rare events at once and the rest in finish(); one OpStats
  /// a queue and phase, default-constructed.
  DOORBELL_INLINE IoLoop(const Warp& warp, const IoPhase& phase, const IoQueue& queue,
                         const typename Queue::State& state, const IoScratch& scratch, OpStats* stats)
      : phase_(phase),
        q_(queue),
        order_(queue.span, order_seed(phase, queue)),
        qp_(state),
        phase_at_(&phase),
        queue_at_(&queue),
        checker_(queue.checks, IoPayload<Warp>(phase, queue), 0),
        s_(scratch),
        out_(stats) {
    u32 usable = 0;
    for (u32 base = 0; base < phase_.window; base += Warp::size) {
      // A slot whose command was lost stays out of use: the device may still write to its buffer.
      const u32 slot = base + warp.lane();
      const bool is_free =
          slot < phase_.window && (s_.state[slot] & slot_state::kind_mask) == slot_state::free;
      const u64 mask = warp.ballot(is_free);
      if (is_free)
        s_.free_ring[usable + rank_in(warp, mask)] =
            static_cast<u16>(next_use(use_of(s_.state[slot])) | slot);
      usable += count_bits(mask);
    }
    free_tail_ = usable;
    warp.sync();
    if (phase_.verify && !phase_.drain) begin_checks(warp);
    // PRP2 is linear in the slot: unused, the second page, or the slot's list.
    const PrpPair prp = prp_pair(q_.data_iova, u64{phase_.blocks} * phase_.lba_bytes, q_.page, q_.list_iova);
    prp2_ = prp.prp2;
    prp2_stride_ = prp.prp2 == 0 ? 0 : prp.list_qwords > 0 ? q_.list_stride : q_.stride;
    find_next_lba(warp);
    start_clock(warp);
  }

  /// Whether the first I/Os' data is made. Before the first step().
  [[nodiscard]] DOORBELL_INLINE bool made(const Warp& warp) {
    take_checks(warp);
    return !checks_.pending();
  }
  /// The phase begins now. Again where the data of other queues was made meanwhile; before the first step().
  DOORBELL_INLINE void start_clock(const Warp& warp) {
    guard_.begin(warp);
    oldest_ = guard_.started();
  }

  /// One round: maybe post a batch, poll once. False when the phase is over.
  DOORBELL_INLINE bool step(const Warp& warp) {
    // The only place: what note_finding() does is inlined, so that a GPU keeps the loop in registers.
    if (awaits_checks()) take_checks(warp);
    if (!guard_.stopping()) post_batch(warp);
    guard_.before_poll(warp);
    const bool paced = first_look_;
    first_look_ = false;
    if (paced) pace_.template await<Clock>();
    const u64 before = Substeps || paced ? Clock::now() : 0;
    typename Queue::Polled polled;
    // A phase that only waits for checkers leaves answers to what it gave up for the drain, which counts
    // them.
    if (phase_.drain || in_flight_ > 0 || !guard_.stopping()) polled = qp_.poll(warp, in_flight_);
    ++mine_.polls;
    if (paced) pace_.looked(polled.count > 0, warp.shfl(Clock::now() - before, 0));
    if constexpr (Substeps) {
      if (in_flight_ > 0) mine_.cq_poll_ticks += Clock::now() - before;
    }
    if (polled.count > 0) {
      complete(warp, polled);
    } else {
      ++mine_.empty_polls;
      if (phase_.drain) return false;
      guard_.missed();
    }
    if (guard_.due(phase_)) housekeeping(warp);
    if (phase_.drain || in_flight_ > 0 || (!guard_.stopping() && posted_ < q_.count)) return true;
    return checks_.pending();
  }

  /// Adds everything counted so far to the OpStats. Call once, after the last step().
  DOORBELL_INLINE void finish(const Warp& warp) {
    if (qp_.cq_unrung() > 0) ring_cq(warp);
    if (checks_.active()) checks_.end(warp);
    warp.sync();
    // These are the same on every lane: one of them reports.
    if (warp.lane() == 0) {
      out_->posted += posted_;
      out_->timed_out += timed_out_;
      out_->aborted += aborted_;
      out_->protocol += qp_.bad_sq_heads() - bad_sq_heads_before_;
      guard_.report(phase_, *out_);
    }
    add_lanes(warp, mine_, *out_);
    warp.sync();
  }

  [[nodiscard]] DOORBELL_INLINE const typename Queue::State& state() const { return qp_.state(); }
  /// Polls since the last completion.
  [[nodiscard]] DOORBELL_INLINE u32 idle() const { return guard_.idle(); }
  /// I/Os done so far, for progress displays.
  [[nodiscard]] DOORBELL_INLINE u64 completed() const { return posted_ - in_flight_; }
  /// The counters so far, for live figures of a loop of one lane. What is asked of the checkers counts as
  /// checked once they have answered.
  [[nodiscard]] DOORBELL_INLINE OpCounters counters() const {
    OpCounters now = mine_;
    now.checked -= checks_.open().checks;
    now.posted = posted_;
    now.timed_out = timed_out_;
    now.aborted = aborted_;
    return now;
  }

 private:
  using Guard = LoopGuard<Warp, Clock, 16>;
  using Probe = std::conditional_t<Substeps, TickProbe<Clock>, NoProbe>;
  // A CPU polls its own cache, so a poll costs nothing and no waiting time is needed.
  static constexpr bool kPaced = Warp::size > 1;
  static constexpr bool kLbaAhead = Warp::size > 1;
  static constexpr bool kSingleApart = Warp::size >= kSqeParts;

  [[nodiscard]] DOORBELL_INLINE u64 to_ns(u64 ticks) const { return Guard::to_ns(phase_, ticks); }
  [[nodiscard]] DOORBELL_INLINE bool is_write() const { return phase_.op == IoOpcode::write; }
  /// The data that an I/O was to find.
  struct Due {
    u64 address;
    u64 sequence;
    bool refused;  ///< the write of these blocks failed
  };
  /// Rare, and a call that knows nothing of the loop: the loop stays in a GPU's registers.
  [[nodiscard]] DOORBELL_NOINLINE static Due due_of(const IoPhase* phase, const IoQueue* queue, u64 index) {
    const IoPayload<Warp> payload(*phase, *queue);
    const pattern::Identity id = payload.due(index);
    return {id.address, id.sequence, payload.write_was_refused(index)};
  }
  DOORBELL_NOINLINE static void note_refused(const IoPhase* phase, const IoQueue* queue, u64 index) {
    IoPayload<Warp>(*phase, *queue).note_refused_write(index);
  }
  /// The cid for the i-th command of the next batch.
  [[nodiscard]] DOORBELL_INLINE u32 next_cid(u32 i) const {
    return s_.free_ring[(free_head_ + i) & kSlotMask];
  }
  /// The use bits of a cid whose slot has been used `use` times.
  [[nodiscard]] DOORBELL_INLINE static u32 next_use(u32 use) { return ((use + 1) & kUseMask) << kSlotBits; }
  [[nodiscard]] DOORBELL_INLINE static u32 use_of(u32 state) {
    return (state >> slot_state::use_shift) & kUseMask;
  }

  DOORBELL_INLINE void post_batch(const Warp& warp) {
    const u64 left = q_.count - posted_;
    if (left == 0) return;
    u64 want = left < phase_.batch ? left : phase_.batch;
    if (is_write()) {
      // Two writes to one block must not be in flight together: passes over the span are separated.
      if (in_pass_ == q_.span) {
        if (in_flight_ > 0) return;
        in_pass_ = 0;
      }
      if (want > q_.span - in_pass_) want = q_.span - in_pass_;
    }
    u32 n = static_cast<u32>(want);
    u32 free = free_tail_ - free_head_;
    if (checks_.active()) {
      // A slot is taken from the ring in the order in which turns were added: I/O i is turn i. The checkers
      // are asked only when that matters.
      const u64 ready = checks_.finished() - posted_;
      starved_ = ready < n && checks_.pending();
      if (starved_) return;
      free = static_cast<u32>(ready);
    }
    if (n > free || n > qp_.room()) {
      if (in_flight_ > 0) return;  // a full batch will fit once more has completed
      n = free < qp_.room() ? free : qp_.room();
      if (n == 0) {  // every slot is lost
        guard_.stop(StopReason::done);
        return;
      }
    }
    // The controller may complete everything in flight before this side looks again: keep that many
    // completion entries free, and give entries back only when that needs it.
    if (qp_.cq_room() < in_flight_ + n) ring_cq(warp);

    const u64 at = guard_.read(warp);
    if constexpr (kSingleApart) {
      if (n == 1) {
        post_one(warp, at);
        return;
      }
    }
    Probe probe;
    if constexpr (Substeps) probe.last = Clock::now();
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      // Each lane prepares one command; the lanes that write its entry then fetch it from that lane.
      const u32 mine = base + warp.lane();
      u32 cid = 0;
      u64 lba = 0;
      if (mine < n) {
        cid = next_cid(mine);
        note_posted(cid, posted_ + mine, at);
        lba = kLbaAhead && base == 0 ? next_lba_ : lba_of_io(phase_, q_, order_, posted_ + mine);
      }
      const auto build = [&](u32 i) {
        const u32 from = i & (Warp::size - 1);
        return command(warp.shfl(cid, from), warp.shfl(lba, from));
      };
      const u32 here = n - base < Warp::size ? n - base : Warp::size;
      if constexpr (Substeps) qp_.post(warp, here, build, probe);
      else qp_.post(warp, here, build);
    }
    take_laps(probe);
    ring(warp);
    posted(warp, n);
  }

  /// A warp's single I/O. What only this side reads is written while the device works.
  DOORBELL_INLINE void post_one(const Warp& warp, u64 at) {
    Probe probe;
    if constexpr (Substeps) probe.last = Clock::now();
    const u32 cid = next_cid(0);
    qp_.post_one(warp, command(cid, warp.shfl(next_lba_, 0)), probe);
    take_laps(probe);
    ring(warp);
    if (warp.lane() == 0) note_posted(cid, posted_, at);
    warp.sync();  // before other lanes' looks at it for the deadline
    posted(warp, 1);
  }
  [[nodiscard]] DOORBELL_INLINE Sqe command(u32 cid, u64 lba) const {
    const u32 slot = cid & kSlotMask;
    return io_command(phase_.op, static_cast<u16>(cid), phase_.nsid, lba, phase_.blocks,
                      q_.data_iova + slot * q_.stride, prp2_ + slot * prp2_stride_);
  }
  DOORBELL_INLINE void note_posted(u32 cid, u64 index, u64 at) {
    const u32 slot = cid & kSlotMask;
    s_.posted_at[slot] = at;
    s_.index[slot] = index;
    s_.state[slot] = slot_state::in_flight | (cid >> kSlotBits) << slot_state::use_shift;
  }
  DOORBELL_INLINE void take_laps(const Probe& probe) {
    if constexpr (Probe::enabled) {
      mine_.build_ticks += probe.build;
      mine_.enqueue_ticks += probe.enqueue;
    }
  }
  /// `n` I/Os are on their way.
  DOORBELL_INLINE void posted(const Warp& warp, u32 n) {
    ++mine_.sq_doorbells;
    free_head_ += n;
    posted_ += n;
    in_flight_ += n;
    in_pass_ += n;
    first_look_ = kPaced && in_flight_ == 1;
    find_next_lba(warp);
  }

  /// Looks up this lane's block of the next batch while the device works on this one: a random order takes a
  /// GPU's lane about as long as all else in a post.
  DOORBELL_INLINE void find_next_lba(const Warp& warp) {
    if constexpr (!kLbaAhead) return;
    const u64 next = posted_ + warp.lane();
    if (next < q_.count) next_lba_ = lba_of_io(phase_, q_, order_, next);
  }

  DOORBELL_INLINE void complete(const Warp& warp, const typename Queue::Polled& polled) {
    guard_.found();
    const u64 at = Guard::now(warp);
    const Cqe& e = polled.mine;
    const bool here = warp.lane() < polled.count;
    const u32 slot = e.cid & kSlotMask;
    const u32 use = e.cid >> kSlotBits;
    const bool ours = here && slot < phase_.window && e.sq_id == qp_.qid();
    const bool matched = ours && claim(&s_.state[slot], slot_state::in_flight | use << slot_state::use_shift,
                                       slot_state::free | use << slot_state::use_shift);
    const bool ok = status_of(e).ok();
    const u64 ticks = matched ? at - s_.posted_at[slot] : 0;
    const bool odd = here && (!matched || !ok || ticks > phase_.late_ticks);
    if (warp.ballot(odd) != 0) handle_odd(warp, e, odd, ours, matched, ticks, at);
    if (matched && ok) {
      ++mine_.succeeded;
      if (phase_.timed) count_latency<Warp>(mine_, s_.bins, to_ns(ticks));
    }
    const u64 done = warp.ballot(matched);
    const u32 rank = rank_in(warp, done);
    if (matched) s_.free_ring[(free_tail_ + rank) & kSlotMask] = static_cast<u16>(next_use(use) | slot);
    if (checks_.active() && matched) {
      const u64 index = s_.index[slot];
      const bool wanted = ok && !is_write() && pattern::sampled(index, phase_.seed, phase_.verify_below);
      checks_.put(checks_.added() + rank,
                  {.before = index, .slot = slot, .check = static_cast<u16>(wanted ? 1 : 0)});
      if (wanted) ++mine_.checked;
    }
    const u32 n = count_bits(done);
    free_tail_ += n;
    in_flight_ -= n;
    if (checks_.active()) {
      checks_.add(n);
      publish_checks(warp);
    }
    guard_.done_at(at);
    warp.sync();
    // Late and repeated completions took entries that those in flight need. post_batch() keeps that many
    // free, but may have nothing left to post.
    if (qp_.cq_room() < in_flight_) ring_cq(warp);
  }

  /// Completions that are anything but a success in time: errors, late ones, and those of commands that
  /// are not (or no longer) in flight. `odd` says which lanes hold one.
  DOORBELL_INLINE void handle_odd(const Warp& warp, const Cqe& e, bool odd, bool ours, bool matched,
                                  u64 ticks, u64 at) {
    const u32 slot = e.cid & kSlotMask;
    const u32 use = (u32{e.cid} >> kSlotBits) << slot_state::use_shift;
    const bool ok = status_of(e).ok();
    const bool of_deleted_queue = status_of(e).type_and_code() == status::sq_deleted;
    const bool was_lost = odd && ours && !matched && !of_deleted_queue &&
                          claim(&s_.state[slot], slot_state::lost | use, slot_state::free | use);
    if (odd && !matched && !was_lost) {
      // With the right queue id but no command behind it, a completion came twice.
      if (e.sq_id != qp_.qid()) ++mine_.protocol;
      else if (!of_deleted_queue) ++mine_.duplicated;
    }
    if (was_lost && ok) {
      ++mine_.succeeded;
      if (phase_.timed) count_latency<Warp>(mine_, s_.bins, to_ns(at - s_.posted_at[slot]));
    }
    if (was_lost || (matched && ticks > phase_.late_ticks)) ++mine_.late;
    const bool refused = (was_lost || matched) && odd && !ok;
    if (refused) ++mine_.failed;
    timed_out_ -= count_bits(warp.ballot(was_lost));  // late after all, not lost
    note_failures(warp, warp.ballot(refused), e);
  }

  /// Asks for the data of the first I/Os, for the slots that are free.
  DOORBELL_INLINE void begin_checks(const Warp& warp) {
    checks_.begin(warp, q_.checks);
    for (u32 i = warp.lane(); i < free_tail_; i += Warp::size)
      checks_.put(i, {.slot = static_cast<u32>(s_.free_ring[i]) & kSlotMask});
    checks_.add(free_tail_);
    publish_checks(warp);
  }
  DOORBELL_INLINE void publish_checks(const Warp& warp) {
    checks_.publish(warp, 0);
#if !defined(DOORBELL_ON_GPU)
    if (!checks_.by_itself()) return;
    warp.sync();
    checker_.catch_up(warp, checks_.added());
    warp.sync();
    checks_.reach(warp, checks_.added(), note_finding(warp));
#endif
  }
  DOORBELL_INLINE void take_checks(const Warp& warp) {
    if (checks_.active() && !checks_.by_itself()) checks_.take(warp, note_finding(warp));
  }
  /// Slots are wanted that are being checked, or nothing else is left.
  [[nodiscard]] DOORBELL_INLINE bool awaits_checks() const {
    return checks_.pending() && (starved_ || in_flight_ == 0);
  }
  [[nodiscard]] DOORBELL_INLINE auto note_finding(const Warp& warp) {
    return [this, &warp](u64, const Turn& t, const Finding& f) {
      if (warp.lane() != 0) return;
      const Due due = due_of(phase_at_, queue_at_, t.before);
      if (f.verdict == pattern::Verdict::unverifiable || due.refused) {
        --mine_.checked;
        ++mine_.unverifiable;
        return;
      }
      count_verdict(mine_, *out_, f.verdict, due.address + f.offset, due.sequence);
    };
  }

  /// Tallies error statuses, one lane after the other: errors are rare.
  DOORBELL_INLINE void note_failures(const Warp& warp, u64 lanes, const Cqe& mine) {
    for (; lanes != 0; lanes &= lanes - 1) {
      const u32 from = lowest_bit(lanes);
      const auto code = static_cast<u16>(warp.shfl(u32{status_of(mine).type_and_code()}, from));
      const u32 slot = warp.shfl(u32{mine.cid}, from) & kSlotMask;
      if (warp.lane() != 0) continue;
      if (is_write()) note_refused(phase_at_, queue_at_, s_.index[slot]);
      count_status(*out_, code, 1);
    }
  }

  DOORBELL_INLINE void ring(const Warp& warp) {
    const u64 before = Substeps ? Clock::now() : 0;
    mine_.register_writes += qp_.ring(warp);
    if constexpr (Substeps) mine_.sq_doorbell_ticks += Clock::now() - before;
  }

  DOORBELL_INLINE void ring_cq(const Warp& warp) {
    const u64 before = Substeps ? Clock::now() : 0;
    mine_.register_writes += qp_.ring_cq(warp);
    ++mine_.cq_doorbells;
    if constexpr (Substeps) mine_.cq_doorbell_ticks += Clock::now() - before;
  }

  /// The slow duties: what the guard watches, and deadlines.
  DOORBELL_INLINE void housekeeping(const Warp& warp) {
    const StopReason found = guard_.look(warp, phase_);
    checks_.watch(warp, awaits_checks(), phase_.timeout_ticks, guard_, mine_, *out_);
    if (found == StopReason::removed || found == StopReason::reset) {
      aborted_ += in_flight_;
      in_flight_ = 0;
      return;
    }
    if (guard_.passed(oldest_, phase_.timeout_ticks)) scan_deadlines(warp, guard_.clock());
  }

  /// Finds commands past their deadline, or all if the loop gave up; their slots are never reused.
  DOORBELL_INLINE void scan_deadlines(const Warp& warp, u64 now_ticks) {
    u32 expired = 0;
    u64 oldest = now_ticks;
    for (u32 slot = warp.lane(); slot < phase_.window; slot += Warp::size) {
      if ((s_.state[slot] & slot_state::kind_mask) != slot_state::in_flight) continue;
      const u64 at = s_.posted_at[slot];
      if (guard_.gave_up() || now_ticks >= guard_.deadline(at, phase_.timeout_ticks)) {
        s_.state[slot] = slot_state::lost | use_of(s_.state[slot]) << slot_state::use_shift;
        ++expired;
      } else if (at < oldest) {
        oldest = at;
      }
    }
    expired = reduce_add(warp, expired);
    oldest = reduce_min(warp, oldest);
    warp.sync();
    oldest_ = oldest;
    if (expired == 0) return;
    in_flight_ -= expired;
    if (guard_.gave_up()) {
      aborted_ += expired;
      return;
    }
    timed_out_ += expired;
    guard_.stop(StopReason::timeout);
  }

  /// Takes a slot from `from` to `to`; one lane wins when two hold completions of the same slot.
  DOORBELL_INLINE static bool claim(u32* state, u32 from, u32 to) {
    if constexpr (Warp::size == 1) {
      if (*state != from) return false;
      *state = to;
      return true;
    } else {
#if defined(DOORBELL_ON_GPU)
      return atomicCAS(state, from, to) == from;
#else
      return __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
    }
  }

  IoPhase phase_;
  IoQueue q_;
  Permutation order_;
  Queue qp_;
  const IoPhase* phase_at_;
  const IoQueue* queue_at_;
  Checker<Warp, IoPayload<Warp>> checker_;  // its work where no others do it
  CheckRequests<Warp> checks_;
  bool starved_ = false;  // posting waits for checkers
  IoScratch s_;
  OpStats* out_;
  OpCounters mine_;  // this lane's share
  u64 prp2_ = 0;     // of slot 0
  u64 prp2_stride_ = 0;
  Guard guard_;
  u64 posted_ = 0;
  u64 next_lba_ = 0;  // of I/O posted_ + lane, where kLbaAhead
  u64 in_pass_ = 0;
  u64 oldest_ = 0;  // no command in flight was posted before
  u32 in_flight_ = 0;
  u32 free_head_ = 0;
  u32 free_tail_ = 0;
  bool first_look_ = false;  // the next poll is the first for the only I/O in flight
  PollPace pace_;
  u64 timed_out_ = 0;
  u64 aborted_ = 0;
  u32 bad_sq_heads_before_ = qp_.bad_sq_heads();
};

}  // namespace doorbell::nvme
