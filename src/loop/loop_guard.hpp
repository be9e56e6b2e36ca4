// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The part that the loops of all paths share besides their work: the clock, and what ends a phase (a stop
// flag, a duration, a device that is gone, a deadline).
#pragma once

#include <doorbell/memory_order.hpp>

#include <concepts>

#include "loop/op_stats.hpp"

namespace doorbell {

/// Asked of a running loop, through the word that PhaseLimits::stop points to.
enum class Asked : u32 {
  nothing = 0,
  stop,     ///< post no more, await what is in flight, report
  give_up,  ///< the same, but await nothing: what is in flight counts as aborted
};

/// A phase's limits, in ticks of the loop's clock. Base of the phase types of all loops.
struct PhaseLimits {
  u64 ns_per_tick_q24 = 1u << 24;
  u64 timeout_ticks = 0;   ///< an operation without an answer counts as timed out after this long
  u64 late_ticks = 0;      ///< an answer counts as late after this long
  u64 check_ticks = 0;     ///< how often to look at the stop flag, the deadlines and the device
  u64 duration_ticks = 0;  ///< stop posting after this long; 0: by count only
  /// Between two looks this side did not run if they are so far apart; 0: that does not happen. (A GPU's
  /// kernel is not stopped with its process.)
  u64 away_ticks = 0;
  const u32* stop = nullptr;  ///< an Asked; may be null
};

/// lost() says whether the device is gone (`removed`), was reset (`reset`) or is fine (`done`).
template <class P>
concept LoopPhase = std::derived_from<P, PhaseLimits> && requires(const P& phase) {
  { phase.lost() } -> std::same_as<StopReason>;
};

/// `Clock` gives ticks (`now()`) and nanoseconds that all queues share (`wall_ns()`). `kIdlePolls`: polls
/// that find nothing between two looks at the clock.
///
/// A loop calls in each round: read() when it posts, before_poll(), found() or missed(), and where due()
/// look() and passed().
template <class Warp, class Clock, u32 kIdlePolls>
class LoopGuard {
 public:
  DOORBELL_INLINE void begin(const Warp& warp) {
    begin_ns_ = Clock::wall_ns();
    started_ = last_check_ = last_done_ = clock_ = now(warp);
  }

  /// The time, the same on every lane: lanes that disagreed would take different branches.
  [[nodiscard]] DOORBELL_INLINE static u64 now(const Warp& warp) { return warp.shfl(Clock::now(), 0); }
  DOORBELL_INLINE u64 read(const Warp& warp) { return clock_ = now(warp); }
  /// The last reading. After a poll that found nothing it is older than that poll.
  [[nodiscard]] DOORBELL_INLINE u64 clock() const { return clock_; }
  [[nodiscard]] DOORBELL_INLINE u64 started() const { return started_; }
  [[nodiscard]] DOORBELL_INLINE u64 last_done() const { return last_done_; }
  /// Operations were completed at `at`.
  DOORBELL_INLINE void done_at(u64 at) { last_done_ = clock_ = at; }

  /// Polls since the last one that found something.
  [[nodiscard]] DOORBELL_INLINE u32 idle() const { return idle_; }
  DOORBELL_INLINE void before_poll(const Warp& warp) {
    if (idle_ % kIdlePolls == kIdlePolls - 1) clock_ = now(warp);
  }
  DOORBELL_INLINE void found() { idle_ = 0; }
  DOORBELL_INLINE void missed() { ++idle_; }

  /// True when nothing more is posted.
  [[nodiscard]] DOORBELL_INLINE bool stopping() const { return stopping_; }
  /// Posts no more; of several reasons the gravest is kept. `done`: for no reason that is reported.
  DOORBELL_INLINE void stop(StopReason why) {
    stopping_ = true;
    if (why > stop_) stop_ = why;
  }

  /// Whether it is time for look().
  [[nodiscard]] DOORBELL_INLINE bool due(const PhaseLimits& limits) const {
    return again_ || clock_ - last_check_ >= limits.check_ticks;
  }
  /// Looks at the stop flag, the duration and the device, and stops where one of them asks for it. Returns
  /// what it found new. Lane 0's readings decide for all.
  template <LoopPhase Phase>
  DOORBELL_INLINE StopReason look(const Warp& warp, const Phase& phase) {
    note_done(phase);
    if constexpr (kMayBeStopped)
      if (phase.away_ticks != 0 && clock_ - last_check_ >= phase.away_ticks) {
        // A look counts for something however late it is, so that a side that always runs seldom has a
        // deadline.
        away_ += clock_ - last_check_ - phase.away_ticks;
        back_at_ = clock_;
      }
    last_check_ = clock_;
    again_ = false;
    u32 word = 0;
    if (warp.lane() == 0) {
      // Both loads go out before either is looked at: one way to host memory instead of two.
      const u32 asked = phase.stop != nullptr ? load_relaxed(phase.stop) : 0;
      word = static_cast<u32>(phase.lost()) << 2 | asked;
    }
    word = warp.shfl(word, 0);
    const auto asked = static_cast<Asked>(word & 3);
    if (asked == Asked::give_up) gave_up_ = true;
    auto why = static_cast<StopReason>(word >> 2);
    if (why == StopReason::done && !stopping_) {
      if (asked != Asked::nothing) why = StopReason::requested;
      else if (phase.duration_ticks != 0 && clock_ - started_ >= phase.duration_ticks)
        why = StopReason::duration;
    }
    if (why != StopReason::done) stop(why);
    return why;
  }
  /// When what is awaited since `since`, for `limit` ticks, is missing. A device may have been stopped
  /// together with this side: the time for which this side did not run does not count.
  [[nodiscard]] DOORBELL_INLINE u64 deadline(u64 since, u64 limit) const {
    if constexpr (kMayBeStopped)
      if (since < back_at_) return (since + away_ < back_at_ ? since + away_ : back_at_) + limit;
    return since + limit;
  }
  /// Whether the loop was asked to await nothing more.
  [[nodiscard]] DOORBELL_INLINE bool gave_up() const { return gave_up_; }
  /// Whether what is awaited since `since`, the earliest of all, is missing after `limit` ticks, or is
  /// awaited no more because the loop gave up. What came while this side did not run is not, however late it
  /// is looked at: only a poll after the deadline that finds nothing ends the phase. Where the last poll
  /// found something, it looks again after the next. For between look() and the next poll.
  [[nodiscard]] DOORBELL_INLINE bool passed(u64 since, u64 limit) {
    if constexpr (kMayBeStopped)
      if (since >= back_at_) away_ = 0;
    if (!gave_up_ && clock_ < deadline(since, limit)) return false;
    if (idle_ > 0) return true;
    again_ = true;
    return false;
  }

  /// Adds the times and the reason to `out`. One lane.
  DOORBELL_INLINE void report(const PhaseLimits& limits, OpStats& out) {
    note_done(limits);
    const u64 busy = last_done_ - started_;
    out.begin_ns = begin_ns_;
    out.busy_ticks += busy;
    // The two clocks are read at slightly different times and in steps, and run a little apart. No operation
    // took longer than all of them.
    const u64 busy_ns = to_ns(limits, busy);
    const u64 own_ns = begin_ns_ + busy_ns;
    out.end_ns = done_ns_ > begin_ns_ ? done_ns_ : begin_ns_;
    if (out.end_ns < own_ns && own_ns - out.end_ns <= kClockSteps + busy_ns / kClockDrift)
      out.end_ns = own_ns;
    out.stop = stop_;
  }
  [[nodiscard]] DOORBELL_INLINE static u64 to_ns(const PhaseLimits& limits, u64 ticks) {
    return (ticks * limits.ns_per_tick_q24) >> 24;
  }

 private:
  static constexpr bool kMayBeStopped = Warp::size == 1;
  static constexpr u64 kClockSteps = 2048;  ///< nanoseconds: two readings in steps of up to 1 us
  static constexpr u64 kClockDrift = 64;    ///< one part of so many; more is a warning, not put right

  /// Finds out when the last completion was by the shared clock, while it is not long ago: after a long wait
  /// for what was lost, a small drift between the clocks would be longer than the phase.
  DOORBELL_INLINE void note_done(const PhaseLimits& limits) {
    if (last_done_ >= last_check_) done_ns_ = Clock::wall_ns() - to_ns(limits, Clock::now() - last_done_);
  }

  u64 begin_ns_ = 0;
  u64 started_ = 0;
  u64 clock_ = 0;
  u64 last_check_ = 0;
  u64 last_done_ = 0;
  u64 done_ns_ = 0;  // the same by the shared clock, as far as last_check_
  u64 away_ = 0;     // for how long this side did not run, since some time before the earliest operation
  u64 back_at_ = 0;  // when it last began to run again
  u32 idle_ = 0;
  bool again_ = false;  // to look again after the next poll
  bool stopping_ = false;
  bool gave_up_ = false;
  StopReason stop_ = StopReason::done;
};

}  // namespace doorbell
