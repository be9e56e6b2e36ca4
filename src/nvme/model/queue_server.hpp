// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Serves I/O queues as a controller does, from inside a kernel: takes doorbells, fetches entries, moves data,
// posts completions. The same source runs in a GPU's blocks and, for tests, on CPU threads.
//
// A Team is the block: warp() is the caller's place in it, warps() how many there are, sync() waits for all
// of them. The first warp takes commands and posts completions; all warps move data.
#pragma once

#include <doorbell/warp.hpp>

#include "nvme/model/served_data.hpp"

namespace doorbell::nvme {

/// The memory that one server works in: a block's shared memory. It starts as zeros.
struct ServerMemory {
  ServedSq sq[kServedQueues];
  ServedCq cq[kServedQueues];
  Sqe entries[kServedBurst];
  Outcome outcomes[kServedBurst];
  RecentWrites recent;
  RangeTable ranges;
  ServedRange near_ranges[kNearRanges];
  u32 sqs;  ///< slots in use are below this
  u32 cqs;
  u32 sequence;  ///< of the last order
  u32 count;     ///< commands of this burst; kEnd: the server ends
  u32 source;    ///< the slot that they come from
  u64 shared;    ///< a bit for each of them whose data all warps move
  u32 bad_doorbells;
};

static_assert(kServedBurst <= 64);  // a bit for each command of a burst

/// `Clock` has wall_ns().
template <class Warp, class Clock, class Team>
class QueueServer {
 public:
  enum class Round { idle, worked, ended };

  DOORBELL_INLINE QueueServer(const Warp& warp, const Team& team, const ServerJob& job, u32 server,
                              ServerMemory& memory)
      : warp_(warp), team_(team), job_(job), server_(server), m_(memory), leads_(team.warp() == 0) {}

  /// One round over all queues. All lanes of all warps call it together. What the first warp returns says
  /// whether there was work.
  DOORBELL_HD Round round() {
    bool worked = false;
    if (leads_) {
      worked = look();
      for (u32 slot = 0; slot < m_.cqs && job_.tracks != 0; ++slot) worked = post_due(slot) || worked;
    }
    // Each queue that has work gets one burst; the first warp chooses, the others follow.
    for (u32 cursor = 0;;) {
      if (leads_ && m_.count != kEnd) fetch(cursor);
      team_.sync();
      if (m_.count == kEnd) return Round::ended;
      if (m_.count == 0) break;
      cursor = m_.source + 1;
      worked = true;
      execute();
      // Orders the data that all warps moved before the completions that announce it.
      team_.sync();
      if (leads_) complete();
    }
    team_.sync();  // all have seen the count before the next round changes it
    return worked ? Round::worked : Round::idle;
  }

 private:
  static constexpr u32 kEnd = ~0u;
  static constexpr u32 kRoundsPerHeadLook = 4096;
  static constexpr u64 kPagesShared = 4;  // a transfer of more pages is shared by all warps

  // --- the first warp: orders, doorbells ----------------------------------------------------------------

  /// Takes the doorbells' values and carries out a new order. True if there was one.
  DOORBELL_HD bool look() {
    if (warp_.lane() == 0) m_.count = 0;
    u32 sequence = m_.sequence;
    bool gone = false;
    // One load a lane for everything that can have changed: they go out together. The acquires order the
    // values before later loads of what they announce.
    for (u32 base = 0; base < m_.sqs + 2; base += Warp::size) {
      const u32 item = base + warp_.lane();
      const u32* word = nullptr;
      if (item == 0) word = job_.sequences + server_;
      else if (item == 1) word = job_.gone;
      else if (item < m_.sqs + 2 && m_.sq[item - 2].entries != 0) word = m_.sq[item - 2].tail_word;
      const u32 value = word != nullptr ? load_acquire(word) : 0;
      if (base == 0) sequence = warp_.shfl(value, 0);
      if (Warp::size == 1 ? base == 1 : base == 0) gone = warp_.shfl(value, 1 % Warp::size) != 0;
      if (item >= 2 && word != nullptr && !m_.sq[item - 2].take_tail(value)) bad_doorbell();
    }
    warp_.sync();
    if (gone) forget_queues();
    // Otherwise heads are read only when a queue lacks room, and at that time every head is possible.
    if (++rounds_ % kRoundsPerHeadLook == 0)
      for (u32 slot = 0; slot < m_.cqs; ++slot)
        if (m_.cq[slot].entries != 0) take_head(m_.cq[slot]);
    warp_.sync();
    if (sequence == m_.sequence) return false;
    obey(sequence);
    return true;
  }

  DOORBELL_NOINLINE void bad_doorbell() {
#if defined(DOORBELL_ON_GPU)
    const u32 now = atomicAdd(&m_.bad_doorbells, 1u) + 1;
#else
    const u32 now = ++m_.bad_doorbells;
#endif
    store_relaxed(&job_.answers[server_].bad_doorbells, now);
  }
  DOORBELL_NOINLINE void take_head(ServedCq& q) {
    // The acquire orders the host's reads of freed entries before the new stores to them.
    const u32 rung = load_acquire(q.head_word);
    warp_.sync();
    if (warp_.lane() == 0 && !q.take_head(rung)) bad_doorbell();
    warp_.sync();
  }
  /// Entries that may be written, after a look at the head if they are fewer than `wanted`.
  [[nodiscard]] DOORBELL_INLINE u32 room(ServedCq& q, u32 wanted) {
    if (q.free() < wanted) take_head(q);
    return q.free();
  }

  DOORBELL_NOINLINE void obey(u32 sequence) {
    const ServerOrder& order = job_.orders[server_];
    u32 result = 0;
    using Kind = ServerOrder::Kind;
    switch (order.kind) {
      case Kind::ranges:
        take_ranges(order);
        break;
      case Kind::add_cq:
        if (warp_.lane() == 0) {
          m_.cq[order.slot] = order.cq;
          if (order.slot >= m_.cqs) m_.cqs = order.slot + 1;
        }
        break;
      case Kind::add_sq:
        if (warp_.lane() == 0) {
          m_.sq[order.slot] = order.sq;
          if (order.slot >= m_.sqs) m_.sqs = order.slot + 1;
        }
        break;
      case Kind::delete_sq:
        end_commands(order.slot);
        break;
      case Kind::delete_cq:
        if (warp_.lane() == 0) m_.cq[order.slot].entries = 0;
        break;
      case Kind::move_sq_doorbell:
        if (warp_.lane() == 0) m_.sq[order.slot].tail_word = order.doorbell;
        break;
      case Kind::move_cq_doorbell:
        if (warp_.lane() == 0) {
          m_.cq[order.slot].head_word = order.doorbell;
          m_.cq[order.slot].bar = 0;
        }
        break;
      case Kind::abort:
        result = abort(order.slot, order.cid) ? 1 : 0;
        break;
      case Kind::drop_all:
        forget_queues();
        break;
      case Kind::save:
        save_counts();
        break;
      case Kind::end:
        if (warp_.lane() == 0) m_.count = kEnd;
        break;
    }
    warp_.sync();
    if (warp_.lane() != 0) return;
    m_.sequence = sequence;
    ServerAnswer& answer = job_.answers[server_];
    store_relaxed(&answer.result, result);
    store_release(&answer.sequence, sequence);  // the order's effects come before its answer
  }

  DOORBELL_INLINE void take_ranges(const ServerOrder& order) {
    const bool near = order.range_count <= kNearRanges;
    if (near)
      for (u32 i = warp_.lane(); i < order.range_count; i += Warp::size) m_.near_ranges[i] = order.ranges[i];
    if (warp_.lane() == 0) m_.ranges = {near ? m_.near_ranges : order.ranges, order.range_count};
  }

  // --- the first warp: commands come in --------------------------------------------------------------------

  /// A burst of the first queue from slot `cursor` on that has work: as many entries as came, as one burst
  /// holds, and as can be completed.
  DOORBELL_HD void fetch(u32 cursor) {
    u32 n = 0;
    u32 slot = cursor;
    for (; slot < m_.sqs; ++slot) {
      n = takes(m_.sq[slot]);
      if (n > 0) break;
    }
    if (n > 0) {
      // 16 bytes a lane: a warp's loads cover whole lines.
      const ServedSq& q = m_.sq[slot];
      auto* to = reinterpret_cast<Word16*>(m_.entries);
      const Word16* from = q.ring + u64{q.head} * kSqeParts;
      model::gather_words(warp_, to, n * kSqeParts, [&](u32 i) { return from + i; });
    }
    warp_.sync();  // all lanes have seen the last burst's count, and the entries are there
    u64 shared = 0;
    for (u32 base = 0; base < n && job_.media != nullptr; base += Warp::size) {
      const u32 i = base + warp_.lane();
      shared |= warp_.ballot(i < n && shared_by_all(m_.entries[i])) << base;
    }
    if (warp_.lane() == 0) {
      m_.count = n;
      m_.source = slot;
      m_.shared = shared;
    }
    warp_.sync();
  }
  [[nodiscard]] DOORBELL_INLINE u32 takes(ServedSq& q) {
    u32 n = q.entries == 0 ? 0 : q.announced();
    if (n == 0) return 0;
    if (n > kServedBurst) n = kServedBurst;
    if (n > q.entries - q.head) n = q.entries - q.head;  // not past the ring's end
    ServedCq& cq = m_.cq[q.cq];
    const u32 most = room(cq, n);
    if (warp_.lane() == 0) {
      if (most < n && q.stalled == 0)
        mine_.cq_full += n - most;  // once for each time that the queue fills up
      q.stalled = most < n ? 1 : 0;
    }
    if (most < n) n = most;
    if (job_.tracks != 0) {
      const u32 late = (cq.late_room - cq.late_count) / 2;  // a command may be reported twice
      if (n > late) n = late;
    }
    return n;
  }

  // --- all warps: data ------------------------------------------------------------------------------------

  DOORBELL_HD void execute() {
    const ServedSq& q = m_.sq[m_.source];
    if (job_.media == nullptr) {
      // No data moves: each lane does whole commands.
      if (!leads_) return;
      for (u32 i = warp_.lane(); i < m_.count; i += Warp::size) m_.outcomes[i] = run(OneLane{}, q, i, 0, 1);
      return;
    }
    // Of the commands this warp has every so many-th: each lane plans one, then all lanes move the data of
    // all.
    const u32 warps = team_.warps(), w = team_.warp();
    const u32 mine = m_.count > w ? (m_.count - w + warps - 1) / warps : 0;
    for (u32 base = 0; base < mine; base += Warp::size) {
      const u32 here = mine - base < Warp::size ? mine - base : Warp::size;
      Move move{};
      const bool later = warp_.lane() < here && !plan(q, w + (base + warp_.lane()) * warps, move);
      copy_all(move, here);
      for (u64 left = warp_.ballot(later); left != 0; left &= left - 1) {
        const u32 i = w + (base + lowest_bit(left)) * warps;
        if ((m_.shared >> i & 1) != 0) continue;
        const Outcome o = run(warp_, q, i, 0, 1);
        if (warp_.lane() == 0) m_.outcomes[i] = o;
      }
    }
    for (u64 left = m_.shared; left != 0; left &= left - 1) {
      const u32 i = lowest_bit(left);
      const Outcome o = run(warp_, q, i, w, warps);
      if (i % warps == w && warp_.lane() == 0) m_.outcomes[i] = o;
    }
  }

  /// This lane's share of what comes before data moves. False: the command is run by the warp, which makes
  /// its outcome anew.
  [[nodiscard]] DOORBELL_INLINE bool plan(const ServedSq& q, u32 i, Move& move) {
    Outcome& o = m_.outcomes[i];
    o = {};
    if (ends_early(q, i, o)) return true;
    PlannedData data{{job_, m_.ranges, m_.recent, o}};
    run_command(data, m_.entries[i], o);
    if (data.unplanned) return false;
    move = data.move;
    return true;
  }

  /// Each lane's move, by all lanes: the loads of several are under way together.
  DOORBELL_INLINE void copy_all(const Move& move, u32 n) {
    constexpr u32 kTogether = Warp::size >= 8 ? 8 : 1;
    for (u32 first = 0; first < n; first += kTogether) {
      u64 to[kTogether], from[kTogether];
      u32 bytes[kTogether], most = 0;
      DOORBELL_UNROLL
      for (u32 k = 0; k < kTogether; ++k) {
        to[k] = warp_.shfl(reinterpret_cast<u64>(move.to), first + k);
        from[k] = warp_.shfl(reinterpret_cast<u64>(move.from), first + k);
        bytes[k] = warp_.shfl(move.bytes, first + k);
        if (bytes[k] > most) most = bytes[k];
      }
      for (u32 at = warp_.lane() * sizeof(Word16); at < most; at += Warp::size * sizeof(Word16)) {
        Word16 words[kTogether];
        DOORBELL_UNROLL
        for (u32 k = 0; k < kTogether; ++k)
          if (at < bytes[k]) words[k] = load16(reinterpret_cast<const Word16*>(from[k] + at));
        DOORBELL_UNROLL
        for (u32 k = 0; k < kTogether; ++k)
          if (at < bytes[k]) store16(reinterpret_cast<Word16*>(to[k] + at), words[k]);
      }
    }
  }

  [[nodiscard]] DOORBELL_INLINE bool shared_by_all(const Sqe& e) const {
    return static_cast<IoOpcode>(e.opcode) != IoOpcode::compare &&
           u64{blocks_of(e)} * job_.shape.lba_bytes > kPagesShared * kModelPage;
  }

  /// Command `i`, whose data `group` moves: of every `parts` pages the one at `part`.
  template <class Group>
  DOORBELL_HD Outcome run(const Group& group, const ServedSq& q, u32 i, u32 part, u32 parts) {
    Outcome o{};
    if (ends_early(q, i, o)) return o;
    GroupData<Group> data{{job_, m_.ranges, m_.recent, o}, group, part, parts};
    run_command(data, m_.entries[i], o);
    return o;
  }
  /// Draws the command's fault. True if the command ends before its data is looked at.
  [[nodiscard]] DOORBELL_INLINE bool ends_early(const ServedSq& q, u32 i, Outcome& o) const {
    return job_.tracks != 0 && nvme::ends_early(job_.faulty != 0 ? &job_.faults : nullptr, q.qid,
                                                q.fetched + i, q.outstanding, m_.entries[i], o);
  }

  // --- the first warp: completions go out -----------------------------------------------------------------

  DOORBELL_HD void complete() {
    ServedSq& q = m_.sq[m_.source];
    ServedCq& cq = m_.cq[q.cq];
    const u32 head = ring_after(q.head, m_.count, q.entries);
    // A device that goes away with one command does not get to those behind it.
    const u32 n = job_.faulty != 0 ? before_removal() : m_.count;
    count(n);
    if (job_.tracks != 0) {
      complete_tracked(n, head);
      return;
    }
    const auto each = [&](auto&& put) {
      for (u32 i = warp_.lane(); i < n; i += Warp::size) {
        const u32 at = ring_after(cq.tail, i, cq.entries);
        Cqe c = completion_of(m_.entries[i].cid, q.qid, head, m_.outcomes[i].status);
        c.status = static_cast<u16>(c.status | (at < cq.tail ? cq.phase ^ 1 : cq.phase));
        put(cq.ring + at, encode_cqe(c));
      }
    };
    each([](Word16* p, const Word16& w) { begin16(p, w); });
    // Orders the rest of the entries, and the data that all warps moved, before the phase tags.
    release_all();
    each([](Word16* p, const Word16& w) { finish16(p, w); });
    warp_.sync();
    if (warp_.lane() == 0) {
      q.head = head;
      q.fetched += n;
      cq.advance(n);
    }
    warp_.sync();
  }

  /// The first `n` commands of the burst, by lane 0 alone, one after the other.
  DOORBELL_NOINLINE void complete_tracked(u32 n, u32 head) {
    ServedSq& q = m_.sq[m_.source];
    ServedCq& cq = m_.cq[q.cq];
    const u32 taken = m_.count;
    warp_.sync();  // all lanes have read what lane 0 changes
    if (warp_.lane() == 0) {
      q.head = head;
      q.fetched += taken;
      for (u32 i = 0; i < n; ++i) {
        const Sqe& e = m_.entries[i];
        const model::Fault fault = m_.outcomes[i].injected.fault;
        // Of two commands of this round with one cid, the second is refused here.
        u16 st = m_.outcomes[i].status;
        if (st == status::success && is_outstanding(q.outstanding, e.cid)) {
          st = status::cid_conflict;
          ++mine_.errors;
        }
        u64 due = 0;
        if (job_.link.limited())
          due = job_.link.finish_time(job_.link_free_at, Clock::wall_ns(),
                                      u64{blocks_of(e)} * job_.shape.lba_bytes);
        const model::CompletionReport r = job_.faults.report(fault, due, [] { return Clock::wall_ns(); });
        if (model::FaultDraw::of_completion(fault)) count_fault(fault);
        if (r.times == 0 || r.due_ns != 0) set_outstanding(q.outstanding, e.cid, true);
        const Cqe c = completion_of(e.cid, q.qid, head, st);
        for (u32 k = 0; k < r.times; ++k) {
          // There is room for one completion of each command. The second waits where there is none.
          if (r.due_ns == 0 && cq.free() > taken - i - 1) cq.post(c);
          else cq.late[cq.late_count++] = {r.due_ns, c, m_.source};
        }
      }
    }
    warp_.sync();
    if (n < taken) leave();
  }

  /// Fault::removal: no server touches the host's memory any more.
  DOORBELL_NOINLINE void leave() {
    forget_queues();
    if (warp_.lane() != 0) return;
    store_release(job_.gone, 1);
    store_release(&job_.answers[server_].removed, 1);
  }
  DOORBELL_NOINLINE void forget_queues() {
    warp_.sync();
    for (u32 i = warp_.lane(); i < kServedQueues; i += Warp::size) m_.sq[i].entries = m_.cq[i].entries = 0;
    if (warp_.lane() == 0) m_.sqs = m_.cqs = 0;
    warp_.sync();
  }

  /// Reports late completions of the queue at `slot` that are due, as far as there is room.
  DOORBELL_NOINLINE bool post_due(u32 slot) {
    ServedCq& cq = m_.cq[slot];
    if (cq.entries == 0 || cq.late_count == 0) return false;
    const u64 now = warp_.shfl(Clock::wall_ns(), 0);
    bool any = false;
    for (u32 base = 0; base < cq.late_count;) {
      const u32 i = base + warp_.lane();
      const u64 due = warp_.ballot(i < cq.late_count && cq.late[i].due_ns <= now);
      if (due == 0) {
        base += Warp::size;
        continue;
      }
      if (room(cq, 1) == 0) break;
      any = true;
      warp_.sync();  // all lanes have decided alike before lane 0 changes what they decided by
      if (warp_.lane() == 0) {
        const u32 at = base + lowest_bit(due);
        LateCompletion l = cq.late[at];
        ServedSq& q = m_.sq[l.sq];
        // The second of two completions is of a command that ended with the first.
        if (l.due_ns != 0) set_outstanding(q.outstanding, l.cqe.cid, false);
        l.cqe.sq_head = static_cast<u16>(q.head);
        cq.post(l.cqe);
        cq.erase_late(at);
      }
      warp_.sync();
    }
    return any;
  }
  /// Completes a command that is outstanding, and forgets its late completions.
  DOORBELL_NOINLINE void end_command(u32 slot, u16 cid, u16 st) {
    warp_.sync();
    if (warp_.lane() == 0) {
      ServedSq& q = m_.sq[slot];
      ServedCq& cq = m_.cq[q.cq];
      cq.erase_late_if([&](const LateCompletion& l) { return l.sq == slot && l.cqe.cid == cid; });
      set_outstanding(q.outstanding, cid, false);
      cq.post(aborted_completion(cid, q.qid, q.head, st));
    }
    warp_.sync();
  }
  DOORBELL_NOINLINE bool abort(u32 slot, u16 cid) {
    const ServedSq& q = m_.sq[slot];
    if (q.entries == 0 || q.outstanding == nullptr || !is_outstanding(q.outstanding, cid)) return false;
    if (room(m_.cq[q.cq], 1) == 0) return false;
    end_command(slot, cid, status::abort_requested);
    return true;
  }
  /// Ends the commands of the submission queue at `slot`, and forgets it.
  DOORBELL_NOINLINE void end_commands(u32 slot) {
    ServedSq& q = m_.sq[slot];
    ServedCq& cq = m_.cq[q.cq];
    if (q.entries != 0 && q.outstanding != nullptr) {
      // The host may have made room since the last round, and looks no more after the answer to the deletion.
      (void)post_due(q.cq);
      for (u32 word = 0; word < kCidWords; ++word)
        while (q.outstanding[word] != 0 && room(cq, 1) != 0)
          end_command(slot, static_cast<u16>(word * 64 + lowest_bit(q.outstanding[word])),
                      status::sq_deleted);
    }
    warp_.sync();
    if (warp_.lane() == 0) {
      cq.erase_late_if([&](const LateCompletion& l) { return l.sq == slot; });
      q.entries = 0;
    }
  }

  // --- counts ---------------------------------------------------------------------------------------------

  /// Commands of the burst before the one with which the device goes away.
  [[nodiscard]] DOORBELL_INLINE u32 before_removal() const {
    for (u32 i = 0; i < m_.count; ++i)
      if (m_.outcomes[i].injected.fault == model::Fault::removal) return i;
    return m_.count;
  }
  DOORBELL_INLINE void count(u32 n) {
    for (u32 i = warp_.lane(); i < n; i += Warp::size) {
      const Outcome& o = m_.outcomes[i];
      o.add_to(mine_);
      mine_.dma_faults += o.dma_faults;
      if (o.happened) count_fault(o.injected.fault);
    }
    if (job_.faulty == 0) return;
    warp_.sync();
    if (warp_.lane() == 0)
      for (u32 i = 0; i < n; ++i) {
        const Sqe& e = m_.entries[i];
        if (static_cast<IoOpcode>(e.opcode) == IoOpcode::write && m_.outcomes[i].stored)
          m_.recent.add(lba_of(e), blocks_of(e));
      }
  }
  DOORBELL_INLINE void count_fault(model::Fault f) {
    count64_own(&job_.counts[server_].injected[static_cast<u32>(f)]);
  }
  DOORBELL_NOINLINE void save_counts() {
    ServerCounts& c = job_.counts[server_];
    IoTotals::in_pairs(c.io, mine_, [&](u64& to, u64& mine) {
      const u64 sum = reduce_add(warp_, mine);
      mine = 0;
      if (warp_.lane() == 0) store64_relaxed(&to, load64_relaxed(&to) + sum);
    });
  }

  const Warp& warp_;
  const Team& team_;
  const ServerJob& job_;
  u32 server_;
  ServerMemory& m_;
  bool leads_;
  u32 rounds_ = 0;
  IoTotals mine_;  // of this lane, since they were last saved
};

}  // namespace doorbell::nvme
