// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The loop of a ping-pong, as a runner takes it. It plays the end that sends first, the end that answers, or
// both if both are in this process. An operation is a message and its answer; its latency is half of the time
// between them.
#pragma once

#include <optional>

#include "loop/lane_counters.hpp"
#include "rma/operation_work.hpp"
#include "rma/ping_pong_end.hpp"

namespace doorbell::rma {

template <class Clock, class Queue>
class PingPong {
 public:
  using State = OpState<typename Queue::State>;

  /// Parameters are those of OpLoop. For an answering end alone, the caller clears what arrives before the
  /// other process may begin.
  PingPong(const OneLane&, const OpPhase& phase, const OpQueue& queue, const State& state,
           const OpScratch& scratch, OpStats* stats)
      : phase_(phase), count_(queue.count), state_(&state), bins_(scratch.bins), out_(stats) {
    const bool starts = phase.role == Role::initiator;
    const bool answers = !starts || queue.remote != nullptr;
    const auto memory = [&](bool first) { return PingPongMemory::of(queue, first); };
    if (starts && !phase.drain) {
      incoming(phase, memory(true)).clear();
      if (answers) incoming(phase, memory(false)).clear();
    }
    if (starts) first_.emplace(phase, memory(true), queue.count, state.own);
    if (answers) second_.emplace(phase, memory(false), queue.count, starts ? state.peer : state.own);
    start_clock(kLane);
  }

  [[nodiscard]] bool made(const OneLane&) const { return true; }
  /// As OpLoop's.
  void start_clock(const OneLane& lane) { guard_.begin(lane); }

  /// One round: sends, looks, answers. False when the phase is over.
  bool step(const OneLane& lane) {
    guard_.before_poll(lane);
    ++mine_.polls;
    bool any = phase_.drain ? drain() : false;
    if (!phase_.drain) {
      if (second_) any = answer();
      if (first_) any = play() || any;
    }
    if (any) {
      guard_.found();
    } else {
      ++mine_.empty_polls;
      guard_.missed();
      if (phase_.drain && guard_.idle() >= kDrainPolls) return false;
      if (guard_.idle() % kIdlePolls == 0) look_around();
    }
    if (guard_.due(phase_)) housekeeping();
    return phase_.drain || waiting_ || !over() || (!broken_ && !late() && outstanding());
  }

  /// Adds everything counted so far to the OpStats. Call once, after the last step().
  void finish(const OneLane& lane) {
    if (first_) first_->add_odd(*out_);
    if (second_) second_->add_odd(*out_);
    if (!phase_.drain && !broken_ && outstanding() && mine_.succeeded > 0) {
      // The data arrived, but the sender had no completion for it.
      take_back_last();
      ++out_->timed_out;
    }
    time_last();
    out_->posted += first_ ? first_->sent() : 0;
    out_->failed += failed_;
    out_->timed_out += timed_out_;
    out_->aborted += aborted_;
    guard_.report(phase_, *out_);
    add_lanes(lane, mine_, *out_);
  }

  [[nodiscard]] State state() const {
    State s = *state_;
    if (first_) s.own = first_->state();
    if (second_) (first_ ? s.peer : s.own) = second_->state();
    return s;
  }
  /// Steps since something last happened.
  [[nodiscard]] u32 idle() const { return guard_.idle(); }
  [[nodiscard]] u64 completed() const { return mine_.succeeded; }
  /// Counters so far, for live figures.
  [[nodiscard]] OpCounters counters() const {
    OpCounters now = mine_;
    now.failed += failed_;
    now.timed_out = timed_out_;
    now.aborted = aborted_;
    return now;
  }

 private:
  using End = PingPongEnd<Queue>;
  static constexpr OneLane kLane{};
  static constexpr u32 kIdlePolls = 64;   ///< empty steps between looks at the clock and at completions
  static constexpr u32 kDrainPolls = 64;  ///< empty steps after which nothing more is expected

  using Guard = LoopGuard<OneLane, Clock, kIdlePolls>;
  [[nodiscard]] bool over() const {
    return guard_.stopping() || (first_ && first_->sent() == count_ && !waiting_);
  }
  [[nodiscard]] bool late() { return guard_.passed(guard_.last_done(), phase_.timeout_ticks); }
  /// True while completions of the phase are missing at its end. An answering end alone leaves them to its
  /// next phase.
  [[nodiscard]] bool outstanding() const {
    return first_ && (first_->outstanding() || (second_ && second_->outstanding()));
  }

  /// Plays the end that sends first; true if something happened.
  bool play() {
    if (!waiting_) {
      if (over() || !first_->room()) return false;
      sent_at_ = guard_.read(kLane);
      mine_.register_writes += first_->send(sent_at_);
      ++mine_.sq_doorbells;
      waiting_ = true;
      return true;
    }
    if (!first_->look()) return false;
    const u64 at = Guard::now(kLane);
    guard_.done_at(at);
    const u64 ticks = at - sent_at_;
    time_last();
    last_ticks_ = ticks;
    untimed_ = phase_.timed;
    if (ticks > phase_.late_ticks && first_->counts_late_answer()) ++mine_.late;
    ++mine_.succeeded;
    waiting_ = false;
    first_->take(mine_, *out_);
    collect(*first_);
    return true;
  }

  /// Adds the last message's time to the figures: the message can no longer fail.
  void time_last() {
    if (untimed_) count_latency<OneLane>(mine_, bins_, Guard::to_ns(phase_, last_ticks_) / 2);
    untimed_ = false;
  }
  /// Removes the last message from the figures: it had its answer, but failed nevertheless.
  void take_back_last() {
    --mine_.succeeded;
    untimed_ = false;
  }

  /// Plays the other end: answers first and then checks the data.
  bool answer() {
    if (broken_ || !second_->room() || !second_->look()) return false;
    mine_.register_writes += second_->send(second_->asks_next() ? Guard::now(kLane) : 0);
    second_->take(mine_, *out_);
    if (!first_) {
      ++mine_.succeeded;
      guard_.done_at(guard_.clock());
    }
    collect(*second_);
    return true;
  }

  [[gnu::cold]] bool drain() {
    const bool any = first_ && first_->drain();
    return (second_ && second_->drain()) || any;
  }

  void collect(End& end) {
    if (end.outstanding() && end.collect()) note(end);
  }
  /// A completion was taken at `end`.
  void note(End& end) {
    if (end.completion_is_late(Guard::now(kLane), phase_.late_ticks)) ++mine_.late;
    note_failures();
  }

  /// Also finds failures of messages that asked for no completion: such messages never arrive.
  [[gnu::cold]] void look_around() {
    if (phase_.drain) return;
    while (first_ && first_->collect()) note(*first_);
    while (second_ && second_->collect()) note(*second_);
    note_failures();
  }

  [[gnu::cold]] void note_failures() {
    if (broken_) return;
    Status bad = first_ ? first_->status() : Status::ok;
    if (bad == Status::ok && second_) bad = second_->status();
    if (bad == Status::ok) return;
    broken_ = true;
    guard_.stop(StopReason::broken);
    count_status(*out_, static_cast<u16>(bad), 1);
    // Either the message under way will have no answer, or its answer came and the failure shows only now.
    ++failed_;
    if (first_ && !waiting_ && mine_.succeeded > 0) take_back_last();
    waiting_ = false;
  }

  /// Conditions that need no look at every step, as in OpLoop.
  [[gnu::cold]] void housekeeping() {
    if (guard_.look(kLane, phase_) == StopReason::removed) {
      aborted_ += waiting_ ? 1 : 0;
      waiting_ = false;
      broken_ = true;  // nothing more comes
    } else if (waiting_ && guard_.passed(sent_at_, phase_.timeout_ticks)) {
      if (!guard_.gave_up()) guard_.stop(StopReason::timeout);
      ++(guard_.gave_up() ? aborted_ : timed_out_);
      waiting_ = false;
      broken_ = true;
    } else if (first_ && !waiting_ && late()) {
      guard_.stop(StopReason::timeout);  // no completions, so no room for the next message
    }
  }

  OpPhase phase_;
  u64 count_;
  const State* state_;
  u64* bins_;
  OpStats* out_;
  std::optional<End> first_;
  std::optional<End> second_;
  OpCounters mine_;
  Guard guard_;
  u64 sent_at_ = 0;
  u64 last_ticks_ = 0;    // time of the last message and its answer
  bool untimed_ = false;  // that time is not in the figures yet
  u64 failed_ = 0;
  u64 timed_out_ = 0;
  u64 aborted_ = 0;
  bool waiting_ = false;  // for the answer to the last message
  bool broken_ = false;
};

/// A ping-pong over any kind of queue pair, for its runners.
template <class Queue>
struct PingPongWork : OperationWork<Queue> {
  template <bool Substeps>
  using Loop = PingPong<HostClock, Queue>;
};

}  // namespace doorbell::rma
