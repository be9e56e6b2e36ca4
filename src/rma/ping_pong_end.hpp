// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One end of a ping-pong: it sends one message for each message that arrives. A WRITE's arrival is seen in
// memory, as ib_write_lat of perftest sees it: the last byte of message i is 1 + i % 255, and a NIC writes
// that byte last. A SEND's arrival is its receive completion. An end writes the request of its next message
// while the other end's message is under way, so that only the doorbell is left to do when that message
// arrives.
//
// One message in so many asks for a completion, which shows that the messages before it have left too. A
// message that fails produces a completion of its own. An end's buffer has four slots: messages leave from
// slots 0 and 1 and arrive in slots 2 and 3, in turn. An end can therefore answer first and check the data
// afterwards: the slot is not written again before the end's next answer.
#pragma once

#include "loop/payload.hpp"
#include "rma/op_types.hpp"

namespace doorbell::rma {

inline constexpr u32 kPingPongSlots = 4;
/// The operations that can send a ping-pong's messages.
[[nodiscard]] constexpr bool is_ping_pong_op(Op op) {
  return op == Op::write || op == Op::send;
}

/// The addresses of an end's buffer and of its peer's buffer.
struct PingPongMemory {
  u8* own = nullptr;
  u64 own_iova = 0;
  u32 lkey = 0;
  u32 peer_rkey = 0;
  u64 peer_iova = 0;
  u64 stride = 0;
  u32 number = 0;      ///< of the queue pair, for the pattern's addresses
  bool first = false;  ///< this end sends the first message

  /// The memory of one end of `q`: the end that sends the first message, or the other one.
  static PingPongMemory of(const OpQueue& q, bool first) {
    if (first) return {q.local, q.local_iova, q.lkey, q.rkey, q.remote_iova, q.stride, q.number, true};
    return {q.remote, q.remote_iova, q.receive_lkey, q.local_rkey, q.local_iova, q.stride, q.number, false};
  }
};

/// The messages of one direction, as one of its ends sees them.
struct PingPongMessages {
  const OpPhase* phase;
  const PingPongMemory* memory;
  bool pings;    ///< true: the messages of the end that sends first
  u32 turn = 0;  ///< of the slots where messages arrive: 1 when message 0 arrives in the second

  static u32 from(u64 i) { return static_cast<u32>(i % 2); }
  [[nodiscard]] u32 to(u64 i) const { return 2 + static_cast<u32>((i + turn) % 2); }
  static u8 mark(u64 i) { return static_cast<u8>(1 + i % 255); }
  [[nodiscard]] u8* source(u64 i) const { return memory->own + from(i) * memory->stride; }
  [[nodiscard]] u8* arrival(u64 i) const { return memory->own + to(i) * memory->stride; }
  [[nodiscard]] u8* marker(u64 i) const { return arrival(i) + phase->bytes - 1; }
  [[nodiscard]] u32 patterned() const { return phase->bytes > 0 ? phase->bytes - 1 : 0; }
  [[nodiscard]] u64 first_address() const {
    return (u64{memory->number} << 40) + (u64{pings ? 0u : 1u} << 39);
  }
  [[nodiscard]] pattern::Identity name(u64 i) const {
    return {phase->seed, first_address() + i % 2 * memory->stride, phase->generation + i};
  }
  void make(u64 i) const {
    if (phase->bytes == 0) return;
    if (phase->verify) fill(i);
    source(i)[phase->bytes - 1] = mark(i);
  }
  void poison(u64 i) const {
    if (phase->verify) spoil(i);
  }

  // Kept out of line, so that the code for messages that are not verified is short and lies in one or two
  // pages.
  [[gnu::noinline]] void fill(u64 i) const { payload::fill(OneLane{}, source(i), patterned(), name(i)); }
  [[gnu::noinline]] void spoil(u64 i) const { payload::poison(OneLane{}, arrival(i), patterned(), name(i)); }
  [[nodiscard, gnu::noinline]] pattern::Checked check(u64 i) const {
    return payload::check(OneLane{}, arrival(i), patterned(), name(i),
                          {.buffers = 2,
                           .step = memory->stride,
                           .first = first_address(),
                           .origin = phase->generation,
                           .last_sequence = phase->generation + i + 1});
  }

  /// Erases what an earlier phase left in the slots where these messages arrive. Call before their sender may
  /// begin. Slots of SENDs are left alone, because receives for them were posted earlier.
  void clear() const {
    if (takes_receive(phase->op)) return;
    for (u64 i = 0; i < 2; ++i) {
      poison(i);
      __atomic_store_n(marker(i), u8{0}, __ATOMIC_RELAXED);
    }
  }
};

/// The messages that arrive at an end.
inline PingPongMessages incoming(const OpPhase& phase, const PingPongMemory& memory, u32 turn = 0) {
  return {&phase, &memory, !memory.first, turn};
}

/// `Queue`: a LoopQueue for one lane. Thread rule: one thread.
template <class Queue>
class PingPongEnd {
 public:
  /// Posts the first receives. `count`: the number of messages that this end sends; ~0: unknown.
  PingPongEnd(const OpPhase& phase, const PingPongMemory& memory, u64 count,
              const typename Queue::State& state)
      : phase_(phase),
        count_(count),
        memory_(memory),
        queue_(state),
        receives_before_(queue_.receives_completed()),
        odd_before_(odd()),
        signalled_(queue_.completed()) {
    if (phase.drain) return;
    if (takes_receive(phase.op)) post_receives();
    await();
    write_ahead();
  }

  [[nodiscard]] u64 sent() const { return sent_; }
  /// True if the queue has room for the next message's request.
  [[nodiscard]] bool room() const { return written_ || queue_.room() > 0; }
  /// True if a completion that was asked for has not come: its serial is ahead of the last one's.
  [[nodiscard]] bool outstanding() const { return signalled_ - queue_.completed() - 1 < 0x7fffffff; }
  /// The status of the first completion that reported an error.
  [[nodiscard]] Status status() const { return status_; }
  [[nodiscard]] typename Queue::State state() const { return queue_.state(); }

  /// True if the next send() must be told the time, because a completion will answer it.
  [[nodiscard]] bool asks_next() {
    if (!written_) write_late();
    return asks_;
  }
  /// Sends the next message at `now`. There must be room(). Returns the register writes.
  u32 send(u64 now) {
    if (asks_next()) {
      signalled_ = queue_.posted();
      asked_[asked_next_++ % kAsked] = {signalled_, now};
      if (asked_next_ - asked_first_ > kAsked) ++asked_first_;
    }
    written_ = false;
    completion_was_late_ = false;
    ++sent_;
    return queue_.ring(kLane);
  }

  /// Looks a few times for the next message; true if it has arrived.
  [[nodiscard]] bool look() {
    if (awaited_ != nullptr) {
      // The message's other bytes are read after this one. The byte has changed, even if its new value is
      // wrong.
      for (u32 i = 0; i < kLooks; ++i)
        if (marker_ = __atomic_load_n(awaited_, __ATOMIC_ACQUIRE); marker_ != before_) return true;
      return false;
    }
    const auto polled = queue_.poll_receives(kLane, 1);
    if (polled.count == 0) return false;
    note(polled.mine);
    wrong_length_ = polled.mine.bytes != phase_.bytes;
    return polled.mine.status == Status::ok;
  }

  /// Call after look(): checks the message, and makes the next one to send.
  void take(OpCounters& counters, OpStats& table) {
    const PingPongMessages in = incoming();
    if (phase_.verify && pattern::sampled(arrived_, phase_.seed, phase_.verify_below)) {
      ++counters.checked;
      const pattern::Checked worst = check(in);
      if (worst.verdict != pattern::Verdict::ok)
        count_verdict(counters, table, worst.verdict, worst.address, phase_.generation + arrived_);
    }
    markers_[arrived_ % 2] = marker_;
    in.poison(arrived_ + 2);
    ++arrived_;
    await();
    if (takes_receive(phase_.op)) post_receives();
    write_ahead();
  }

  /// Takes completions of sent messages; true if there was one.
  bool collect() {
    const auto polled = queue_.poll(kLane, 1);
    if (polled.count == 0) return false;
    note(polled.mine);
    if (!polled.mine.ignore) answered_ = ask_of(polled.serial);
    return true;
  }
  /// Whether the completion that collect() has just taken came later than `late_ticks` after its message, at
  /// `now`. True once for each.
  [[nodiscard]] bool completion_is_late(u64 now, u64 late_ticks) {
    const Asked a = answered_;
    answered_ = {};
    if (a.at == 0 || now - a.at <= late_ticks) return false;
    completion_was_late_ = a.serial == queue_.posted();
    return true;
  }
  /// Call when the answer to the last message came late, before take(). True if that counts: its completion
  /// has not been counted as late, and will not be.
  [[nodiscard]] bool counts_late_answer() {
    if (asked_next_ != asked_first_ && asked_[(asked_next_ - 1) % kAsked].serial == queue_.posted())
      --asked_next_;
    return !completion_was_late_;
  }
  /// Takes completions for which the loop no longer waits.
  [[gnu::cold]] bool drain() {
    const bool any = collect();
    return queue_.poll_receives(kLane, 1).count > 0 || any;
  }

  /// Adds completions that came twice, never or without a request since this end began.
  void add_odd(OpCounters& into) const {
    const Odd now = odd();
    into.duplicated += now.duplicated - odd_before_.duplicated;
    into.skipped += now.skipped - odd_before_.skipped;
    into.protocol += now.protocol - odd_before_.protocol;
  }

 private:
  static constexpr OneLane kLane{};
  static constexpr u32 kLooks = 64;  // short, so that other checks are not delayed

  struct Odd {
    u32 duplicated, skipped, protocol;
  };
  /// A request that asked for a completion, and when it was sent (0: not known).
  struct Asked {
    u32 serial = 0;
    u64 at = 0;
  };
  static constexpr u32 kAsked = 64;  // more than a queue of two asked completions holds, also when rounded up

  [[nodiscard]] PingPongMessages outgoing() const { return {&phase_, &memory_, memory_.first}; }
  /// Receives use their slots from the time they are posted, which may have been in an earlier phase.
  [[nodiscard]] PingPongMessages incoming() const {
    return rma::incoming(phase_, memory_, takes_receive(phase_.op) ? receives_before_ % 2 : 0);
  }
  [[nodiscard]] Odd odd() const { return {queue_.duplicated(), queue_.skipped(), queue_.protocol()}; }
  [[nodiscard]] pattern::Checked check(const PingPongMessages& in) const {
    const pattern::Checked worst = in.check(arrived_);
    if (worst.verdict != pattern::Verdict::ok || phase_.bytes == 0) return worst;
    const bool right = *in.marker(arrived_) == PingPongMessages::mark(arrived_) && !wrong_length_;
    return right ? worst : pattern::Checked{pattern::Verdict::corrupt, in.name(arrived_).address};
  }
  /// Notes where a WRITE's arrival will be seen.
  void await() {
    if (takes_receive(phase_.op)) return;
    awaited_ = incoming().marker(arrived_);
    before_ = markers_[arrived_ % 2];
  }
  /// Call while the other end's message is under way. There must be a next message: a request that is never
  /// sent would spoil the next phase.
  void write_ahead() {
    if (count_ != ~u64{0} && sent_ < count_ && room()) write();
  }
  /// Writes the request late: it was unknown whether there is a next message, or the queue had no room.
  [[gnu::noinline]] void write_late() { write(); }
  void write() {
    const PingPongMessages out = outgoing();
    out.make(sent_);
    const bool signalled = sent_ + 1 == count_ || ++unsignalled_ >= phase_.signal_every;
    if (signalled) unsignalled_ = 0;
    queue_.post(kLane, 1, [&](u32) {
      WorkRequest r;
      r.op = phase_.op;
      r.signalled = signalled;
      r.bytes = phase_.bytes;
      r.lkey = memory_.lkey;
      r.rkey = memory_.peer_rkey;
      r.local = memory_.own_iova + out.from(sent_) * memory_.stride;
      r.remote = memory_.peer_iova + out.to(sent_) * memory_.stride;
      r.imm = static_cast<u32>(sent_);
      if (phase_.inlined) {
        r.inlined = true;
        r.payload = out.source(sent_);
      }
      return r;
    });
    asks_ = signalled;
    written_ = true;
  }
  /// The request that a completion finishes; those before it had none.
  Asked ask_of(u32 serial) {
    while (asked_first_ != asked_next_) {
      const Asked a = asked_[asked_first_ % kAsked];
      if (serial - a.serial > 0x7fffffff) break;  // a later one
      ++asked_first_;
      if (a.serial == serial) return a;
    }
    return {};
  }
  void note(const Completion& c) {
    if (!c.ignore && c.status != Status::ok && status_ == Status::ok) status_ = c.status;
  }

  /// Posts a receive for each arrival slot that has none from an earlier phase.
  void post_receives() {
    const u32 posted = queue_.receives_posted();
    const u32 ahead = posted - queue_.receives_completed();
    if (ahead >= 2) return;
    queue_.post_receives(kLane, 2 - ahead, [&](u32 i) {
      const u64 slot = incoming().to(posted + i - receives_before_);
      return ReceiveRequest{memory_.own_iova + slot * memory_.stride, memory_.lkey, phase_.bytes};
    });
    (void)queue_.ring_receives(kLane);
  }

  OpPhase phase_;  // a copy, in one place with what else every message needs
  u64 count_;
  PingPongMemory memory_;
  Queue queue_;
  u32 receives_before_;
  Odd odd_before_;
  u32 signalled_;        // serial of the last request that asked for a completion
  u32 unsignalled_ = 0;  // messages since then
  Asked asked_[kAsked];  // a ring of those whose completion has not come
  u32 asked_first_ = 0;
  u32 asked_next_ = 0;
  Asked answered_;  // by the last completion
  bool completion_was_late_ = false;
  bool written_ = false;  // the next message's request is written, but its doorbell is not rung
  bool asks_ = false;     // that request asks for a completion
  u64 sent_ = 0;
  u64 arrived_ = 0;
  Status status_ = Status::ok;
  bool wrong_length_ = false;
  const u8* awaited_ = nullptr;  // the last byte of the place where the next WRITE arrives
  u8 before_ = 0;                // the byte's value before that message
  u8 marker_ = 0;                // the byte's value at the last look
  u8 markers_[2] = {0, 0};       // the byte's value when messages arrived, in both slots
};

}  // namespace doorbell::rma
