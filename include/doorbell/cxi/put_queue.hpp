// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Puts and gets through a Cassini command queue, with the interface that the loop of one-sided operations
// needs (rma/op_loop.hpp). A counting event counts completions; only failures make an event.
//
// A card writes successes back when a GET command asks for the counts. Where the device does so, a poll that
// finds nothing asks, one request at a time: it clears the write-back, whose bit `valid` then is the answer.
//
// Thread rule: one thread or one warp owns a PutQueue. Every call is collective.
#pragma once

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/event_queue.hpp>
#include <doorbell/rma/types.hpp>

namespace doorbell::cxi {

/// A PutQueue's whole state: plain data, so that it can stay in memory between two kernels.
struct PutQueueState {
  CommandQueueState commands;  ///< of its transmit queue
  EventQueueState events;      ///< of the queue of failures
  CounterMemory counter;       ///< with a write-back
  u32 nid = 0;                 ///< the destination of the puts
  u32 pid = 0;                 ///< likewise
  u32 pid_bits = 9;            ///< of the NIC: the width of a pid in an address
  u32 requests = 1;            ///< operations in flight at most
  bool restricted = true;      ///< 32-byte commands, whose packets need no order
  bool low_latency = false;    ///< ring() writes commands into the launch page if it can
  bool state_sent = false;     ///< the C_STATE command, which IDC puts need, was sent
  u64 success = 0;             ///< the counter's successes that have been reported
  u32 failures = 0;            ///< events of failed operations
  u32 failing = 0;             ///< of `failures`, those not reported yet
  u32 code = 0;                ///< return code of the last failure
  u32 dead = 0;                ///< the return code that stopped the queue
  u32 posted = 0;              ///< operations, modulo 2^32
  u32 completed = 0;           ///< operations that ended, modulo 2^32
  u32 idle = 0;                ///< polls without news, after some of which the events are looked at
  u32 duplicated = 0;          ///< PutQueue::duplicated()
  u32 protocol = 0;            ///< of PutQueue::protocol(), what the events show
  CommandQueueState asks;      ///< of the queue that asks for the counts; no slots: they come by themselves
  u64 answer = 0;              ///< the CounterCounts of the last answer
  u32 silent = 0;              ///< empty polls since the last answer
  bool asked = false;          ///< an answer is on its way
  bool settled = false;        ///< of PutQueue::settled()
};

/// The status of a failed operation is this number plus its return code: above the numbers of ibv_wc_status.
inline constexpr u32 kStatusOfCode = 0x100;
/// The status of a ReturnCode other than ok.
[[nodiscard]] DOORBELL_INLINE rma::Status status_of(u32 code) {
  return static_cast<rma::Status>(kStatusOfCode + code);
}

/// Puts and gets of one initiator to one destination.
///
/// A request's `lkey` is the address context of its local memory, its `rkey` the portals entry's pid_offset,
/// and its `remote` the offset in that entry's memory. Only for Op::write and Op::read. A counter does not
/// show which operation failed: among operations that end together, the last ones are taken as failed.
template <class Warp>
class PutQueue {
 public:
  using State = PutQueueState;  ///< what a kernel leaves for the next one
  /// A poll's outcome, the same on every lane.
  struct Polled {
    u32 count = 0;         ///< 0: nothing new; else 1
    rma::Completion mine;  ///< of the operations up to `serial`
    u32 serial = 0;        ///< operations finished up to and including this one, modulo 2^32
    bool mixed = false;    ///< one of these, or the next, has failed; which one is not known
  };

  /// Goes on where another PutQueue on the same queues stopped.
  DOORBELL_INLINE explicit PutQueue(const PutQueueState& s)
      : s_(s), commands_(s.commands), events_(s.events) {
    s_.settled = false;
  }
  /// Where another PutQueue on the same queues may go on.
  [[nodiscard]] DOORBELL_INLINE PutQueueState state() const {
    PutQueueState s = s_;
    s.commands = commands_.state();
    s.events = events_.state();
    return s;
  }

  /// Operations that post() may write now.
  [[nodiscard]] DOORBELL_INLINE u32 room() const { return s_.requests - (s_.posted - s_.completed); }
  /// Operations posted, modulo 2^32.
  [[nodiscard]] DOORBELL_INLINE u32 posted() const { return s_.posted; }
  /// Operations that ended, right or wrong, modulo 2^32.
  [[nodiscard]] DOORBELL_INLINE u32 completed() const { return s_.completed; }
  /// Acknowledgements that came without an operation in flight.
  [[nodiscard]] DOORBELL_INLINE u32 duplicated() const { return s_.duplicated; }
  /// Always 0: a counter cannot show it.
  [[nodiscard]] DOORBELL_INLINE u32 skipped() const { return 0; }
  /// Events without a cause, and read pointers that the device cannot have reached.
  [[nodiscard]] DOORBELL_INLINE u32 protocol() const {
    return s_.protocol + commands_.bad_status() + s_.asks.bad_status;
  }
  /// False while polls that find nothing do not show that there is nothing: the device has not said so yet.
  [[nodiscard]] DOORBELL_INLINE bool settled() const {
    return !asks() || (s_.settled && s_.failing == 0) || s_.dead != 0;
  }

  /// Writes `n` <= room() commands, all inlined or none. The device sees them after ring().
  template <class Build>
  DOORBELL_INLINE void post(const Warp& warp, u32 n, Build build) {
    if (n == 0) return;
    s_.posted += n;
    if (s_.dead != 0) return;
    const rma::WorkRequest first = build(0);
    if (first.inlined) {
      post_inlined(warp, n, first, build);
    } else if (!make_room(warp, s_.restricted ? n : 2 * n + 1)) {
      die(ReturnCode::resource_busy);  // the ring is full of commands that the device does not read
    } else if (s_.restricted) {
      commands_.post_puts(warp, n, [&](u32 i) {
        return command<NomatchDma>(Opcode::nomatch_put, Opcode::nomatch_get, build(i));
      });
    } else {
      commands_.post_puts(warp, n,
                          [&](u32 i) { return command<FullDma>(Opcode::put, Opcode::get, build(i)); });
    }
  }
  /// Shows the device everything posted so far. Returns the number of register writes.
  DOORBELL_INLINE u32 ring(const Warp& warp) {
    return s_.low_latency ? commands_.ring_low_latency(warp) : commands_.ring(warp);
  }

  /// Takes finished operations. Does not wait.
  [[nodiscard]] DOORBELL_INLINE Polled poll(const Warp& warp, u32 = 1) {
    const Polled p = look(warp);
    if (asks()) [[unlikely]] {
      if (p.count != 0) s_.settled = false;
      else if (!s_.asked && due()) ask(warp);
    }
    return p;
  }

 private:
  static constexpr u32 kLooksAtEvents = 64;  ///< empty polls between looks for an error event
  static constexpr u32 kMostSilent = 1024;   ///< empty polls between requests for the counts

  [[nodiscard]] DOORBELL_INLINE Polled look(const Warp& warp) {
    CounterCounts now = counts(warp);
    if (successes_since(now) != 0) return take(now);
    if (s_.failing == 0 && (now.failure != (s_.failures & kMaxFailure) || ++s_.idle % kLooksAtEvents == 0)) {
      // Operations that the device counts together with a failure, or before it, ended before the failed one.
      if (read_events(warp)) now = counts(warp);
      if (successes_since(now) != 0) return take(now);
    }
    if (s_.failing != 0) {
      // An event and the counts are two writes: until the failure is counted, operations that ended before it
      // may not be.
      if (uncounted(now)) return {};
      --s_.failing;
      return report(s_.completed + 1, s_.code, false);
    }
    if (s_.dead != 0 && s_.completed != s_.posted) return report(s_.posted, s_.dead, true);
    return {};
  }

  /// True if the device shows the counts when it is asked.
  [[nodiscard]] DOORBELL_INLINE bool asks() const { return s_.asks.memory.slots != 0; }
  /// After an answer without news, whether it is time to ask again: the longer the wait, the less often, so
  /// that a long one takes little from the device and a short one is little longer.
  [[nodiscard]] DOORBELL_INLINE bool due() {
    const u32 pause = s_.idle / 8;
    return ++s_.silent > (pause < kMostSilent ? pause : kMostSilent);
  }
  /// Asks the device for the counts. Without room in the queue, a later poll does.
  DOORBELL_INLINE void ask(const Warp& warp) {
    const CommandQueueState before = s_.asks;
    s_.asks = after_request(warp, before, s_.counter.writeback, s_.counter.index, s_.low_latency);
    s_.asked = s_.asks.rung32 != before.rung32;
  }
  /// A function of its own, and by value: the loops of devices that write each count keep their registers.
  static DOORBELL_NOINLINE CommandQueueState after_request(const Warp& warp, const CommandQueueState before,
                                                           u64* writeback, u32 counter, bool low_latency) {
    CounterCommand get;
    get.opcode = CounterOpcode::get;
    get.ct = counter;
    CommandQueue<Warp> queue(before);
    if (queue.post(warp, get)) {
      // The doorbell is a release: the device answers behind this store.
      if (warp.lane() == 0) store64_relaxed(writeback, 0);
      (void)(low_latency ? queue.ring_low_latency(warp) : queue.ring(warp));
    }
    return queue.state();
  }

  [[nodiscard]] DOORBELL_INLINE CounterCounts counts(const Warp& warp) {
    // The acquire orders the counts before later loads of the data that they stand for; the sync makes that
    // data visible to the other lanes.
    u64 word = warp.lane() == 0 ? load64_acquire(s_.counter.writeback) : 0;
    word = warp.shfl(word, 0);
    warp.sync();
    if (!asks()) [[likely]]
      return unpack<CounterCounts>(&word);
    if (unpack<CounterCounts>(&word).valid) {
      // A failure is written back without being asked for, too. It then passes for the answer, and the answer
      // for that of the next request: none tells of fewer than the one before.
      s_.answer = word;
      s_.settled = s_.settled || s_.asked;
      if (s_.asked) s_.silent = 0;
      s_.asked = false;
    }
    return unpack<CounterCounts>(&s_.answer);
  }
  /// Those that have not been reported.
  [[nodiscard]] DOORBELL_INLINE u64 successes_since(const CounterCounts& now) const {
    return (now.success - s_.success) & kMaxSuccess;
  }
  /// True if an event has told of a failure that is not among the counts yet.
  [[nodiscard]] DOORBELL_INLINE bool uncounted(const CounterCounts& now) const {
    return ((now.failure - s_.failures) & kMaxFailure) > kMaxFailure / 2;
  }
  /// Operations without an answer.
  [[nodiscard]] DOORBELL_INLINE u32 open() const { return s_.posted - s_.completed - s_.failing; }
  DOORBELL_INLINE void die(ReturnCode why) { s_.dead = static_cast<u32>(why); }

  DOORBELL_INLINE Polled take(const CounterCounts& now) {
    const u64 news = successes_since(now);
    s_.success = (s_.success + news) & kMaxSuccess;
    s_.idle = 0;
    const u32 mine = news < open() ? static_cast<u32>(news) : open();
    // A queue that has stopped reported operations as ended whose acknowledgements may still come.
    if (s_.dead == 0) s_.duplicated += static_cast<u32>(news) - mine;
    if (mine == 0) return {};
    Polled p = report(s_.completed + mine, 0, false);
    p.mixed = s_.failing != 0 || now.failure != (s_.failures & kMaxFailure);
    return p;
  }
  DOORBELL_INLINE Polled report(u32 until, u32 code, bool all) {
    Polled p;
    p.count = 1;
    p.serial = s_.completed = until;
    if (code != 0) p.mine.status = status_of(code);
    p.mine.flush_all = all;
    return p;
  }

  /// False: there were none.
  DOORBELL_INLINE bool read_events(const Warp& warp) {
    bool any = false;
    DOORBELL_NO_UNROLL
    for (auto e = events_.poll(warp); e.bytes != 0; e = events_.poll(warp)) {
      any = true;
      const bool operation =
          e.type == EventType::ack || e.type == EventType::reply || e.type == EventType::send;
      if (e.type == EventType::command_failure) {
        die(e.return_code);
      } else if (operation && e.return_code != ReturnCode::ok) {
        ++s_.failures;
        s_.code = static_cast<u32>(e.return_code);
        if (open() > 0) ++s_.failing;
        else ++s_.protocol;
      } else {
        ++s_.protocol;
      }
    }
    (void)events_.ack(warp);
    return any;
  }

  [[nodiscard]] DOORBELL_INLINE DmaFlags flags(bool put) const {
    DmaFlags f;
    f.event_send_disable = f.event_success_disable = true;
    f.restricted = s_.restricted;
    f.event_ct_ack = put;
    f.event_ct_reply = !put;
    return f;
  }
  template <class Command>
  [[nodiscard]] DOORBELL_INLINE Command command(Opcode put, Opcode get, const rma::WorkRequest& r) const {
    const bool writes = r.op == rma::Op::write;
    Command c;
    c.opcode = writes ? put : get;
    c.to(make_dfa(s_.nid, s_.pid, s_.pid_bits, r.rkey));
    c.flags = flags(writes);
    c.lac = r.lkey;
    c.remote_offset = r.remote;
    c.local_addr = r.local;
    c.request_len = r.bytes;
    c.ct = s_.counter.index;
    c.eq = events_.index();
    return c;
  }
  [[nodiscard]] DOORBELL_INLINE bool make_room(const Warp& warp, u32 units) {
    return commands_.room(warp, units) >= units;
  }

  template <class Build>
  DOORBELL_INLINE void post_inlined(const Warp& warp, u32 n, const rma::WorkRequest& first, Build build) {
    const Dfa to = make_dfa(s_.nid, s_.pid, s_.pid_bits, first.rkey);
    if (!s_.state_sent) {
      CState state;
      state.index_ext = to.index_ext;
      state.flags = flags(true);
      state.ct = s_.counter.index;
      state.eq = events_.index();
      s_.state_sent = commands_.post(warp, state);
    }
    bool fits = s_.state_sent;
    DOORBELL_NO_UNROLL
    for (u32 i = 0; i < n && fits; ++i) {
      const rma::WorkRequest r = build(i);
      IdcPut put;
      put.dfa = to.value;
      put.remote_offset = r.remote;
      put.bytes = r.bytes;
      put.payload = r.payload;
      fits = commands_.post(warp, put);
    }
    if (!fits) die(ReturnCode::resource_busy);
  }

  PutQueueState s_;
  CommandQueue<Warp> commands_;
  EventQueue<Warp> events_;
};

}  // namespace doorbell::cxi
