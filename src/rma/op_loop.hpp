// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The sliding window that drives one queue. The loop posts a batch whenever the window has room, rings once,
// takes the completions, checks the data and frees the slots. Operations finish in the order in which they
// were posted, so the window is a ring of slots with two ends. The same source is compiled for a CPU thread
// and for a GPU warp. A Clock gives ticks (`now()`) and shared nanoseconds (`wall_ns()`).
#pragma once

#include <doorbell/rma/types.hpp>

#include "loop/check_ring.hpp"
#include "loop/lane_counters.hpp"
#include "loop/poll_pace.hpp"
#include "rma/op_payload.hpp"

namespace doorbell::rma {

/// Stands for the receiving side of a queue that cannot receive.
struct NoReceives {
  template <class State>
  DOORBELL_INLINE explicit NoReceives(const State&) {}
};

template <class Warp, class Clock, bool Substeps, LoopQueue<Warp> Queue>
class OpLoop {
 public:
  using State = OpState<typename Queue::State>;

  /// `phase`, `queue` and `state` must outlive the loop; a kernel keeps them in shared memory, where they
  /// take no registers. `state` is the queue pairs' state after the previous phase; state() returns it for
  /// the next one. `stats` receives rare events at once and everything else in finish(). Each queue and phase
  /// needs an OpStats of its own, default-constructed.
  DOORBELL_INLINE OpLoop(const Warp& warp, const OpPhase& phase, const OpQueue& queue, const State& state,
                         const OpScratch& scratch, OpStats* stats)
      : phase_(&phase),
        q_(&queue),
        own_(state.own),
        receiver_(state.paired ? state.peer : state.own),
        paired_(state.paired),
        payload_(phase, queue),
        checker_(queue.checks, payload_, 0),
        s_(scratch),
        out_(stats) {
    // If this loop posts the receives too, an operation ends with both completions.
    receives_ = kReceives && takes_receive(phase.op) && !phase.drain &&
                (phase.role == Role::responder || queue.remote != nullptr);
    requests_ = phase.role == Role::initiator;
    requests_before_ = own_.completed();
    if constexpr (kReceives) receives_before_ = receiver_.receives_completed();
    odd_before_ = odd_counts();
    for (u32 i = warp.lane(); i < phase_->window; i += Warp::size) s_.state[i] = 0;
    if (!phase_->drain && requests_) payload_.start(warp);
    warp.sync();
    if (phase_->verify && !phase_->drain) begin_checks(warp);
    start_clock(warp);
  }

  /// Whether the first operations' data is made. Before the first step().
  [[nodiscard]] DOORBELL_INLINE bool made(const Warp& warp) {
    take_checks(warp);
    return !checks_.pending();
  }
  /// The phase begins now. Again where the data of other queues was made meanwhile; before the first step().
  DOORBELL_INLINE void start_clock(const Warp& warp) { guard_.begin(warp); }

  /// One round: maybe post a batch, poll once. False when the phase is over.
  DOORBELL_INLINE bool step(const Warp& warp) {
    // The only place: what note_finding() does is inlined, so that a GPU keeps the loop in registers.
    if (awaits_checks()) take_checks(warp);
    if (!guard_.stopping() && !phase_->drain) post_batch(warp);
    guard_.before_poll(warp);
    const bool paced = first_look_;
    first_look_ = false;
    if (paced) pace_.template await<Clock>();
    const u64 before = Substeps || paced ? Clock::now() : 0;
    bool any = false;
    // A phase that only waits for checkers leaves answers to what it gave up for the drain, which counts
    // them.
    const bool polls = phase_->drain || in_flight() > 0 || !guard_.stopping();
    if (requests_ && polls) any = poll_requests(warp);
    if constexpr (kReceives) {
      if (polls && (receives_ || phase_->drain)) any = poll_receives(warp) || any;
    }
    ++mine_.polls;
    if (paced) pace_.looked(any, warp.shfl(Clock::now() - before, 0));
    if constexpr (Substeps) {
      if (in_flight() > 0) mine_.cq_poll_ticks += Clock::now() - before;
    }
    if (!any && leaving_ && guard_.idle() >= kDrainPolls)
      posted_ = done_;  // receives for which no message will come
    if (any) {
      guard_.found();
      finish_operations(warp);
    } else {
      ++mine_.empty_polls;
      if (phase_->drain && guard_.idle() >= kDrainPolls && settled()) return false;
      guard_.missed();
    }
    if (guard_.due(*phase_)) housekeeping(warp);
    if (phase_->drain || in_flight() > 0 || (!guard_.stopping() && posted_ < q_->count)) return true;
    return checks_.pending();
  }

  /// Adds everything counted so far to the OpStats. Call once, after the last step().
  DOORBELL_INLINE void finish(const Warp& warp) {
    if (checks_.active()) checks_.end(warp);
    warp.sync();
    // It is unknown whether the device carried out an operation that the loop gave up.
    const bool whole = posted_ > 0 && posted_ == done_ && !broken_ && timed_out_ + aborted_ == 0;
    if (requests_ && phase_->verify && is_atomic(phase_->op) && q_->remote != nullptr && whole &&
        warp.lane() == 0) {
      ++mine_.checked;
      if (!payload_.ended_right(done_)) count_verdict(mine_, *out_, pattern::Verdict::corrupt, 0, done_);
    }
    const OddCounts odd = odd_counts();
    // These values are the same on every lane, so one lane reports them.
    if (warp.lane() == 0) {
      out_->posted += posted_;
      out_->timed_out += timed_out_;
      out_->aborted += aborted_;
      out_->duplicated += odd.duplicated - odd_before_.duplicated;
      out_->skipped += odd.skipped - odd_before_.skipped;
      out_->protocol += odd.protocol - odd_before_.protocol;
      guard_.report(*phase_, *out_);
    }
    add_lanes(warp, mine_, *out_);
    warp.sync();
  }

  [[nodiscard]] DOORBELL_INLINE State state() const {
    if constexpr (kReceives) {
      State s = {own_.state(), receiver_.state(), paired_};
      if (!paired_) Queue::take_receives(s.own, receiver_.state());
      return s;
    } else {
      return {own_.state(), {}, false};
    }
  }
  /// Polls since the last completion.
  [[nodiscard]] DOORBELL_INLINE u32 idle() const { return guard_.idle(); }
  /// Operations done so far, for progress displays.
  [[nodiscard]] DOORBELL_INLINE u64 completed() const { return done_; }
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
  static constexpr bool kReceives = ReceivingQueue<Queue, Warp>;
  using Guard = LoopGuard<Warp, Clock, 16>;
  static constexpr u32 kDrainPolls = 64;  ///< empty polls after which no further completion is expected
  /// State of a slot: its receive was flushed, and the request's completion, which gives the reason, has not
  /// come.
  static constexpr u32 kReceiveFlushed = 0x10000;

  struct OddCounts {
    u32 duplicated, skipped, protocol;
  };

  [[nodiscard]] DOORBELL_INLINE u64 to_ns(u64 ticks) const { return Guard::to_ns(*phase_, ticks); }
  [[nodiscard]] DOORBELL_INLINE u32 in_flight() const { return static_cast<u32>(posted_ - done_); }
  /// The slot for `at`, where `at` is less than two windows.
  [[nodiscard]] DOORBELL_INLINE static u32 wrapped(u32 at, u32 window) {
    return at >= window ? at - window : at;
  }
  [[nodiscard]] DOORBELL_INLINE u32 slot_after(u32 slot, u32 n) const {
    return wrapped(slot + n, phase_->window);
  }
  [[nodiscard]] DOORBELL_INLINE OddCounts odd_counts() const {
    OddCounts odd = {own_.duplicated(), own_.skipped(), own_.protocol()};
    if constexpr (kReceives) {
      odd.duplicated += receiver_.duplicated();
      odd.skipped += receiver_.skipped();
      odd.protocol += receiver_.protocol();
    }
    return odd;
  }

  /// False while the queue's device has not said that nothing more has come, at most for a time-out.
  [[nodiscard]] DOORBELL_INLINE bool settled() const {
    if constexpr (requires { own_.settled(); })
      return own_.settled() || guard_.clock() - guard_.started() >= phase_->timeout_ticks;
    return true;
  }

  DOORBELL_INLINE void post_batch(const Warp& warp) {
    const u64 left = q_->count - posted_;
    if (left == 0) return;
    u32 n = left < phase_->batch ? static_cast<u32>(left) : phase_->batch;
    u32 room = phase_->window - in_flight();
    if (checks_.active()) {
      // Slots that are being checked are not free. The checkers are asked only when that matters.
      const u64 ready = checks_.finished() - posted_;
      starved_ = ready < n && checks_.pending();
      if (starved_) return;
      if (ready < room) room = static_cast<u32>(ready);
    }
    if (requests_ && own_.room() < room) room = own_.room();
    if constexpr (kReceives) {
      if (receives_ && receiver_.receive_room() < room) room = receiver_.receive_room();
    }
    if (n > room) {
      if (in_flight() > 0 || room == 0) return;  // a full batch will fit when more operations have finished
      n = room;
    }
    const auto slot_of = [&](u32 i) { return slot_after(post_slot_, i); };
    if constexpr (kReceives) {
      if (receives_) post_receives(warp, n);
    }
    const u64 at = guard_.read(warp);
    if constexpr (kSingleApart) {
      if (n == 1 && requests_) {
        post_one(warp, at);
        posted(1);
        return;
      }
    }
    for (u32 i = warp.lane(); i < n; i += Warp::size) s_.posted_at[slot_of(i)] = at;
    if (requests_) {
      own_.post(warp, n, Requests(*phase_, *q_, payload_.walk(), posted_, post_slot_, n));
      const u64 posted = Substeps ? Clock::now() : 0;
      mine_.register_writes += own_.ring(warp);
      ++mine_.sq_doorbells;
      if constexpr (Substeps) {
        // post() builds the requests in the ring itself, so storing them is not a separate step.
        mine_.build_ticks += posted - at;
        mine_.sq_doorbell_ticks += Clock::now() - posted;
      }
    }
    posted(n);
  }
  /// A warp's single operation. What only this side reads is written while the device works.
  DOORBELL_INLINE void post_one(const Warp& warp, u64 at) {
    const Requests requests(*phase_, *q_, payload_.walk(), posted_, post_slot_, 1);
    u64 built = 0;
    mine_.register_writes += own_.post_one(warp, requests(0), [&] {
      if constexpr (Substeps) built = Clock::now();
    });
    ++mine_.sq_doorbells;
    if constexpr (Substeps) {
      mine_.build_ticks += built - at;
      mine_.sq_doorbell_ticks += Clock::now() - built;
    }
    if (warp.lane() == 0) s_.posted_at[post_slot_] = at;
    warp.sync();  // before other lanes' looks at it for the deadline
  }
  /// `n` operations are on their way.
  DOORBELL_INLINE void posted(u32 n) {
    post_slot_ = slot_after(post_slot_, n);
    posted_ += n;
    first_look_ = kPaced && in_flight() == 1;
  }

  /// Makes the requests of one batch. It copies the values that it needs, because the compiler reads memory
  /// again after every store to a queue.
  class Requests {
   public:
    DOORBELL_INLINE Requests(const OpPhase& phase, const OpQueue& queue, const AtomicWalk& walk, u64 first,
                             u32 first_slot, u32 n)
        : p_(phase), q_(queue), walk_(walk), first_(first), first_slot_(first_slot), n_(n) {}
    /// Request i.
    [[nodiscard]] DOORBELL_INLINE WorkRequest operator()(u32 i) const {
      const u64 index = first_ + i;
      const u64 offset = wrapped(first_slot_ + i, p_.window) * q_.stride;
      WorkRequest r;
      r.op = p_.op;
      r.signalled = i + 1 == n_ || (p_.signal_every < n_ && (i + 1) % p_.signal_every == 0);
      r.bytes = p_.bytes;
      r.local = q_.local_iova + offset;
      r.lkey = q_.lkey;
      r.rkey = q_.rkey;
      r.remote = q_.remote_iova;
      if (is_atomic(r.op)) {
        r.operand = walk_.operand(r.op, index);
        if (r.op == Op::compare_swap) r.compare = walk_.compare(index);
        return r;
      }
      r.remote += p_.target_slots == 0 ? offset : index % p_.target_slots * q_.stride;
      r.imm = static_cast<u32>(index);
      if (p_.inlined) {
        r.inlined = true;
        r.payload = q_.local + offset;
      }
      return r;
    }

   private:
    OpPhase p_;
    OpQueue q_;
    AtomicWalk walk_;
    u64 first_;
    u32 first_slot_;
    u32 n_;
  };

  /// A CPU polls its own cache, so a poll costs nothing and no waiting time is needed.
  static constexpr bool kPaced = Warp::size > 1;
  static constexpr bool kSingleApart = Warp::size > 1 && PostsOne<Queue, Warp>;

  DOORBELL_INLINE void post_receives(const Warp& warp, u32 n) {
    const bool carries = phase_->op != Op::write_imm;
    receiver_.post_receives(warp, n, [&](u32 i) {
      const u64 offset = slot_after(post_slot_, i) * q_->stride;
      return ReceiveRequest{q_->remote_iova + offset, q_->receive_lkey, carries ? phase_->bytes : 0};
    });
    mine_.register_writes += receiver_.ring_receives(warp);
  }

  DOORBELL_INLINE bool poll_requests(const Warp& warp) {
    const auto polled = own_.poll(warp, in_flight());
    if (polled.count == 0) return false;
    if constexpr (requires { polled.mixed; }) mixed_ = polled.mixed;
    if (phase_->drain) count_late(warp, polled);
    else note_failures(warp, polled, requests_before_, false);
    requests_done_ = own_.completed() - requests_before_;
    return true;
  }

  DOORBELL_INLINE bool poll_receives(const Warp& warp) {
    const auto polled = receiver_.poll_receives(warp, in_flight());
    if (polled.count == 0) return false;
    if (!phase_->drain) {
      check_receives(warp, polled);
      note_failures(warp, polled, receives_before_, true);
    }
    receives_done_ = receiver_.receives_completed() - receives_before_;
    return true;
  }

  /// Counts answers to requests that an earlier phase gave up: they are late, not lost. Lanes take turns,
  /// because such answers are rare. A flushed request has had no answer and is not counted.
  DOORBELL_INLINE void count_late(const Warp& warp, const typename Queue::Polled& polled) {
    for (u64 lanes = warp.ballot(warp.lane() < polled.count && !polled.mine.ignore); lanes != 0;
         lanes &= lanes - 1) {
      const u32 from = lowest_bit(lanes);
      const u32 done = warp.shfl(polled.serial, from) - requests_before_;
      const u32 n = done - requests_done_;  // this request, and earlier ones without a completion
      requests_done_ = done;
      const auto status = static_cast<Status>(warp.shfl(static_cast<u32>(polled.mine.status), from));
      if (status == Status::flushed || warp.shfl(polled.mine.flush_all ? 1u : 0u, from) != 0) continue;
      timed_out_ -= n;
      if (warp.lane() != 0) continue;
      const u32 bad = status == Status::ok ? 0 : 1;
      mine_.late += n;
      mine_.succeeded += n - bad;
      mine_.failed += bad;
      if (bad != 0) count_status(*out_, static_cast<u16>(status), bad);
    }
  }

  /// Checks the immediate and the length that each receive reports.
  DOORBELL_INLINE void check_receives(const Warp& warp, const typename Queue::Polled& polled) {
    const Completion& c = polled.mine;
    const bool mine = warp.lane() < polled.count && !c.ignore && c.status == Status::ok;
    const u32 index = polled.serial - 1 - receives_before_;
    const bool wrong =
        mine && (c.bytes != phase_->bytes || (has_imm(phase_->op) && (!c.with_imm || c.imm != index)));
    if (mine && phase_->verify && wrong)
      count_verdict(mine_, *out_, pattern::Verdict::corrupt, q_->number, index);
  }

  /// Remembers which operations ended with an error. Lanes take turns, because errors are rare.
  DOORBELL_INLINE void note_failures(const Warp& warp, const typename Queue::Polled& polled, u32 before,
                                     bool receives) {
    const bool bad = warp.lane() < polled.count && !polled.mine.ignore && polled.mine.status != Status::ok;
    for (u64 lanes = warp.ballot(bad); lanes != 0; lanes &= lanes - 1) {
      const u32 from = lowest_bit(lanes);
      const u32 last =
          warp.shfl(polled.serial, from) - before;  // finished up to and including operation last - 1
      u32 status = warp.shfl(static_cast<u32>(polled.mine.status), from);
      const bool all = warp.shfl(polled.mine.flush_all ? 1u : 0u, from) != 0;
      const u32 done = static_cast<u32>(done_);
      u32 first = last - 1;
      // The reason is in the completion of the operation's own request, which may come later.
      if (receives && requests_ && status == static_cast<u32>(Status::flushed)) status = kReceiveFlushed;
      if (all) {
        first = failed_until_ > done ? failed_until_ : done;
        const u32 until = static_cast<u32>(posted_);
        for (u32 op = first; op < until; ++op) fail_operation(warp, op - done, status);
      } else if (last > done) {
        fail_operation(warp, first - done, status);
        if (last > failed_until_) failed_until_ = last;
      }
      // The queue pair is in its error state: later requests come back flushed, and the device accepts no
      // more.
      if (!broken_) guard_.stop(StopReason::broken);
      broken_ = true;
    }
    warp.sync();
  }

  /// Marks as failed the operation that is `ahead` places behind the oldest in flight.
  DOORBELL_INLINE void fail_operation(const Warp& warp, u32 ahead, u32 status) {
    if (warp.lane() != 0 || ahead >= in_flight()) return;
    u32& state = s_.state[slot_after(done_slot_, ahead)];
    if (state != 0 && state != kReceiveFlushed) return;
    state = status;
    if (status != kReceiveFlushed) count_status(*out_, static_cast<u16>(status), 1);
  }

  /// Finishes the oldest operations, as far as all completions that they wait for have come.
  DOORBELL_INLINE void finish_operations(const Warp& warp) {
    u32 until = requests_ ? requests_done_ : receives_done_;
    // After a connection has failed no more receives complete.
    if (receives_ && requests_ && !broken_ &&
        receives_done_ - static_cast<u32>(done_) < until - static_cast<u32>(done_))
      until = receives_done_;
    u32 n = until - static_cast<u32>(done_);
    if (n > in_flight()) n = in_flight();  // a completion without a request is counted elsewhere
    if (n == 0) return;
    const u64 at = Guard::now(warp);
    const u64 newest = posted_ - 1;
    while (n > 0) {
      const u32 here = n < payload::kManyAtMost ? n : payload::kManyAtMost;
      const u64 good = settle(warp, here, at);
      if (checks_.active()) free_slots(warp, here, good);
      done_slot_ = slot_after(done_slot_, here);
      done_ += here;
      n -= here;
    }
    if (checks_.active()) publish_checks(warp, newest);
    guard_.done_at(at);
  }

  /// Counts and times the oldest `n` operations; returns a bit for each that succeeded.
  DOORBELL_INLINE u64 settle(const Warp& warp, u32 n, u64 at) {
    u64 good = 0;
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const u32 i = base + warp.lane();
      const u32 slot = slot_after(done_slot_, i < n ? i : 0);
      const u32 state = i < n ? s_.state[slot] : 1;
      const bool ok = state == 0;
      if (i < n) {
        const u64 ticks = at - s_.posted_at[slot];
        if (ok) ++mine_.succeeded;
        else ++mine_.failed;
        if (ticks > phase_->late_ticks) ++mine_.late;
        if (ok && phase_->timed) count_latency<Warp>(mine_, s_.bins, to_ns(ticks));
        if constexpr (Substeps) mine_.total_ticks += ticks;
        if (!ok) s_.state[slot] = 0;
      }
      good |= warp.ballot(ok) << base;
      if (!broken_) continue;
      // The request succeeded, so there is no better reason than the flushed receive.
      const u64 flushed = warp.ballot(i < n && state == kReceiveFlushed);
      if (flushed != 0 && warp.lane() == 0)
        count_status(*out_, static_cast<u16>(Status::flushed), count_bits(flushed));
    }
    return good;
  }

  /// Asks for the payloads of the first operations.
  DOORBELL_INLINE void begin_checks(const Warp& warp) {
    checks_.begin(warp, q_->checks);
    for (u32 i = warp.lane(); i < phase_->window; i += Warp::size) checks_.put(i, {.slot = i});
    checks_.add(phase_->window);
    publish_checks(warp, 0);
  }

  /// Adds the turns of the oldest `n` operations' slots; `good` has a bit for each that succeeded.
  DOORBELL_INLINE void free_slots(const Warp& warp, u32 n, u64 good) {
    const bool visible = payload_.visible();
    DOORBELL_NO_UNROLL
    for (u32 base = 0; base < n; base += Warp::size) {
      const u32 i = base + warp.lane();
      if (i >= n) continue;
      const u64 index = done_ + i;
      const bool wanted =
          visible && (good >> i & 1) != 0 &&
          (phase_->verify_below == ~0u || pattern::sampled(index, phase_->seed, phase_->verify_below));
      checks_.put(checks_.added() + i, {.before = index,
                                        .slot = slot_after(done_slot_, i),
                                        .check = static_cast<u16>(wanted && !mixed_ ? 1 : 0),
                                        .last = static_cast<u16>(guard_.stopping() ? 1 : 0)});
      // One of them has failed and it is not known which one, so nothing is known of their data.
      if (wanted) mixed_ ? ++mine_.unverifiable : ++mine_.checked;
    }
    checks_.add(n);
  }

  DOORBELL_INLINE void publish_checks(const Warp& warp, u64 newest) {
    checks_.publish(warp, newest);
#if !defined(DOORBELL_ON_GPU)
    if (!checks_.by_itself()) return;
    const u64 begin = Substeps ? Clock::now() : 0;
    warp.sync();
    checker_.catch_up(warp, checks_.added());
    warp.sync();
    if constexpr (Substeps) mine_.payload_ticks += Clock::now() - begin;
    checks_.reach(warp, checks_.added(), note_finding(warp));
#endif
  }
  DOORBELL_INLINE void take_checks(const Warp& warp) {
    if (checks_.active() && !checks_.by_itself()) checks_.take(warp, note_finding(warp));
  }
  /// Slots are wanted that are being checked, or nothing else is left.
  [[nodiscard]] DOORBELL_INLINE bool awaits_checks() const {
    return checks_.pending() && (starved_ || in_flight() == 0);
  }
  [[nodiscard]] DOORBELL_INLINE auto note_finding(const Warp& warp) {
    return [this, &warp](u64, const Turn& t, const Finding& f) {
      if (warp.lane() == 0)
        count_verdict(mine_, *out_, f.verdict, payload_.address_of(t.before, t.slot) + f.offset,
                      phase_->generation + t.before);
    };
  }

  /// Conditions that need no look at every poll: the guard's, and the deadline of the oldest operation.
  DOORBELL_INLINE void housekeeping(const Warp& warp) {
    const StopReason found = guard_.look(warp, *phase_);
    checks_.watch(warp, awaits_checks(), phase_->timeout_ticks, guard_, mine_, *out_);
    if (found == StopReason::requested) leaving_ = !requests_;
    if (found == StopReason::removed) {
      aborted_ += in_flight();
      give_up(warp);
      return;
    }
    if (in_flight() == 0) return;
    // A responder has to wait for as long as its initiator has something to send, so its deadline runs from
    // the last arrival.
    u64 oldest = s_.posted_at[done_slot_];
    if (!requests_ && guard_.last_done() > oldest) oldest = guard_.last_done();
    if (!guard_.passed(oldest, phase_->timeout_ticks)) return;
    const u32 missing = requests_ ? in_flight() : 0;
    give_up(warp);
    if (guard_.gave_up()) {
      aborted_ += missing;
      return;
    }
    timed_out_ += missing;
    guard_.stop(StopReason::timeout);
  }

  /// Stops waiting for the operations in flight.
  DOORBELL_INLINE void give_up(const Warp& warp) {
    if constexpr (Substeps) {
      const u64 at = Guard::now(warp);
      for (u32 i = warp.lane(); i < in_flight(); i += Warp::size)
        mine_.total_ticks += at - s_.posted_at[slot_after(done_slot_, i)];
    }
    done_ = posted_;
  }

  const OpPhase* phase_;
  const OpQueue* q_;
  Queue own_;
  // The loop uses the receive queue of this queue pair, and the send queue of own_.
  std::conditional_t<kReceives, Queue, NoReceives> receiver_;
  bool paired_;
  OpPayload<Warp> payload_;
  Checker<Warp, OpPayload<Warp>> checker_;  // its work where no others do it
  CheckRequests<Warp> checks_;
  bool starved_ = false;  // posting waits for checkers
  OpScratch s_;
  OpStats* out_;
  OpCounters mine_;  // this lane's share
  OddCounts odd_before_{};
  bool receives_ = false;  // this loop posts receives and waits for them
  bool requests_ = true;   // this loop posts requests and waits for them
  u32 requests_before_ = 0;
  u32 receives_before_ = 0;
  u32 requests_done_ = 0;
  u32 receives_done_ = 0;
  u32 failed_until_ = 0;
  Guard guard_;
  u64 posted_ = 0;
  u64 done_ = 0;
  u32 post_slot_ = 0;
  u32 done_slot_ = 0;
  u64 timed_out_ = 0;
  u64 aborted_ = 0;
  bool leaving_ = false;  // a responder that knows that no more data comes
  bool broken_ = false;
  bool mixed_ = false;  // one of the operations that end now has failed
  PollPace pace_;
  bool first_look_ = false;  // the next poll is the first for the only operation in flight
};

}  // namespace doorbell::rma
