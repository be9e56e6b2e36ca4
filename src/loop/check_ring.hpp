// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a loop that posts operations leaves the work on their payloads to others: checker warps on a GPU,
// checker threads on a CPU, or, on a CPU without those, the loop's own thread.
//
// The unit of that work is a turn. Turn t belongs to the t-th time that a slot becomes free: whoever takes it
// checks the data of the operation that has ended in the slot, if there was one, and then makes the slot
// ready for operation t (fills the source, marks the target). The loop writes turns into a ring in the order
// in which slots become free, and posts operation t when all turns up to t are finished, so that no slot is
// used again before its check has ended.
//
// Turns are shared out by number: `group` turns in a row to each checker in turn, or, of a large payload, one
// piece of a turn to each. No checker has to ask another, and the loop finds how far all are as the least of
// their counts.
#pragma once

#include <doorbell/memory_order.hpp>
#include <doorbell/pattern.hpp>
#include <doorbell/warp.hpp>

#include "loop/op_stats.hpp"

namespace doorbell {

/// One turn of a slot. Written by the loop, read by checkers.
struct alignas(16) Turn {
  u64 before = 0;  ///< the index of the operation that has ended in the slot
  u32 slot = 0;
  u16 check = 0;  ///< 0: its data is not looked at (it failed, there was none, it is not in the sample)
  u16 last = 0;   ///< 1: no operation follows, so the slot stays as it is. A queue that fails reports all its
                  ///< operations as ended, and the device may still work on some. Only queues whose
                  ///< completions do not name their operation need it (rma/op_loop.hpp).
};
static_assert(sizeof(Turn) == 16);

/// One queue's ring of turns: where it lies and how work is shared out. Plain data; the memory is the
/// runner's, in GPU memory where the loop is a kernel. A ring without memory stands for a phase in which
/// nothing is checked.
///
/// The memory, in 64-bit words: a line that the loop writes, a line that checkers add to, a line for each
/// checker, what checkers found for each entry, the entries.
struct CheckRing {
  static constexpr u32 kLineWords = 16;  ///< 128 bytes: two lines of a CPU's cache, which loads them in pairs

  u64* words = nullptr;
  u32 capacity = 0;      ///< entries, a power of two from 2 on; at least the loop's window
  u32 checkers = 0;      ///< 0: the loop does their work itself, which only a CPU's can
  u32 group_shift = 0;   ///< a checker takes 1 << group_shift turns together; 0 where pieces_shift is not
  u32 pieces_shift = 0;  ///< a turn has 1 << pieces_shift pieces, some of which may be empty
  u32 piece_bytes = 0;   ///< of each piece but the last; a multiple of 512 where there are several
  u32 epoch = 0;         ///< of the phase: the memory holds what is meant when its own epoch is this
  const u32* abandon = nullptr;  ///< non-zero: the loop will not come; checkers end

  [[nodiscard]] static constexpr u64 bytes(u32 capacity, u32 checkers) {
    return 8ull * kLineWords * (2 + (checkers > 0 ? checkers : 1)) + 8ull * capacity +
           sizeof(Turn) * capacity;
  }
  /// Shares out payloads of `payload_bytes` so that a checker has about `each` bytes at a time: a piece of
  /// one payload, or up to `most` small payloads.
  DOORBELL_INLINE void share(u64 payload_bytes, u64 each, u32 most) {
    pieces_shift = group_shift = 0;
    if (checkers > 1)
      while (payload_bytes >> pieces_shift > each) ++pieces_shift;
    // Rounded up before the division, so that all pieces together are the whole.
    const u64 units = (payload_bytes + pattern::kUnitBytes - 1) / pattern::kUnitBytes;
    piece_bytes =
        static_cast<u32>(((units + (u64{1} << pieces_shift) - 1) >> pieces_shift) * pattern::kUnitBytes);
    if (pieces_shift > 0) return;
    while (2u << group_shift <= most && payload_bytes << (group_shift + 1) <= each) ++group_shift;
  }

  [[nodiscard]] DOORBELL_INLINE u64* asked() const { return words; }  ///< turns written
  [[nodiscard]] DOORBELL_INLINE u64* newest() const {
    return words + 1;
  }  ///< the newest operation posted by then
  [[nodiscard]] DOORBELL_INLINE u64* over() const { return words + 2; }   ///< 1: no more turns
  [[nodiscard]] DOORBELL_INLINE u64* begun() const { return words + 3; }  ///< the epoch
  [[nodiscard]] DOORBELL_INLINE u64* findings() const {
    return words + kLineWords;
  }  ///< how many were reported
  /// The first share (group or piece) that checker `n` has not finished.
  [[nodiscard]] DOORBELL_INLINE u64* finished(u32 n) const { return words + kLineWords * (2 + n); }
  /// The worst that was found in a turn's data: 0, or pack() of it.
  [[nodiscard]] DOORBELL_INLINE u64* found(u64 turn) const {
    return words + kLineWords * (2 + (checkers > 0 ? checkers : 1)) + (turn & (capacity - 1));
  }
  [[nodiscard]] DOORBELL_INLINE Turn* entry(u64 turn) const {
    return reinterpret_cast<Turn*>(found(0) + capacity) + (turn & (capacity - 1));
  }
};

/// A checker's finding about an operation's data, as one word: of several the largest counts, which is the
/// worst, and of these the first.
struct Finding {
  pattern::Verdict verdict = pattern::Verdict::ok;
  u64 offset = 0;  ///< of the first bad unit within the payload, < 2^48

  static constexpr u64 kOffsetMask = (u64{1} << 48) - 1;
  [[nodiscard]] DOORBELL_INLINE u64 packed() const {
    return u64{static_cast<u32>(verdict)} << 48 | (kOffsetMask - offset);
  }
  [[nodiscard]] DOORBELL_INLINE static Finding of(u64 word) {
    return {static_cast<pattern::Verdict>(word >> 48), kOffsetMask - (word & kOffsetMask)};
  }
};

/// The checkers' side: one warp or thread. `Payload` knows what operations carry:
///   turns(warp, ring, first, n, newest, found)  checks and makes ready the slots of n turns; n <= kTogether
///   piece(warp, ring, turn, offset, bytes, newest, found)  the same for one piece of one turn
/// found(turn, verdict, offset) is called on every lane.
template <class Warp, class Payload>
class Checker {
 public:
  static constexpr u32 kTogether = 64;

  DOORBELL_INLINE Checker(const CheckRing& ring, const Payload& payload, u32 number)
      : ring_(ring), payload_(payload), number_(number), next_(u64{number} << ring.group_shift) {}

  /// The first share that is not finished.
  [[nodiscard]] DOORBELL_INLINE u64 next() const { return next_; }

  /// True when the loop has begun its phase. Until then nothing else may be called.
  [[nodiscard]] DOORBELL_INLINE bool begun() const {
    return load64_acquire_own(ring_.begun()) == ring_.epoch;
  }
  /// True when no more turns come, after step() has found nothing to do.
  [[nodiscard]] DOORBELL_INLINE bool over(const Warp& warp) const {
    return warp.shfl(load64_acquire_own(ring_.over()), 0) != 0;
  }

  /// One round: does as much of its next share as has been asked for. False when there was nothing to do.
  DOORBELL_INLINE bool step(const Warp& warp) {
    // Pairs with CheckRequests::publish(): behind it the entries, and the data that their operations brought.
    const u64 asked = warp.shfl(load64_acquire_own(ring_.asked()), 0) << ring_.pieces_shift;
    warp.sync();
    const u64 end = ((next_ >> ring_.group_shift) + 1) << ring_.group_shift;
    const u64 until = asked < end ? asked : end;
    if (until <= next_) return false;
    work(warp, until);
    // Pairs with CheckRequests::take(): before it the loads of checked data and the stores of new data.
    warp.sync();
    next_ = until == end ? end + (u64{ring_.checkers - 1} << ring_.group_shift) : until;
    if (warp.lane() == 0) store64_release_own(ring_.finished(number_), next_);
    return true;
  }

  /// Everything that has been asked for, by the loop itself.
  DOORBELL_INLINE void catch_up(const Warp& warp, u64 asked) {
    while (next_ < asked) {
      const u64 until = asked - next_ > kTogether ? next_ + kTogether : asked;
      work(warp, until);
      next_ = until;
    }
  }

 private:
  DOORBELL_CPU_NOINLINE void work(const Warp& warp, u64 until) {
    const u64 newest = load64_relaxed(ring_.newest());
    const auto found = [&](u64 turn, pattern::Verdict v, u64 offset) {
      if (warp.lane() != 0) return;
      raise64_own(ring_.found(turn), Finding{v, offset}.packed());
      count64_own(ring_.findings());
    };
    if (ring_.pieces_shift == 0) {
      payload_.turns(warp, ring_, next_, static_cast<u32>(until - next_), newest, found);
      return;
    }
    const u64 turn = next_ >> ring_.pieces_shift;
    const u64 offset = (next_ - (turn << ring_.pieces_shift)) * ring_.piece_bytes;
    payload_.piece(warp, ring_, turn, offset, ring_.piece_bytes, newest, found);
  }

  CheckRing ring_;
  Payload payload_;
  u32 number_;
  u64 next_;
};

/// The loop's side. One warp.
template <class Warp>
class CheckRequests {
 public:
  /// Nothing is checked: any number of operations may be posted.
  CheckRequests() = default;

  /// Prepares the ring's memory; turns may be added, and checkers begin.
  DOORBELL_INLINE void begin(const Warp& warp, const CheckRing& ring) {
    ring_ = ring;
    for (u32 i = warp.lane(); i < 3; i += Warp::size) ring_.words[i] = 0;
    for (u32 i = warp.lane(); i < ring_.capacity; i += Warp::size) *ring_.found(i) = 0;
    for (u32 n = warp.lane(); n < ring_.checkers; n += Warp::size)
      *ring_.finished(n) = u64{n} << ring_.group_shift;
    if (warp.lane() == 0) *ring_.findings() = 0;
    warp.sync();
    if (warp.lane() == 0) store64_release_own(ring_.begun(), ring_.epoch);
  }

  [[nodiscard]] DOORBELL_INLINE bool active() const { return ring_.words != nullptr; }
  /// True when the loop has to do the checkers' work.
  [[nodiscard]] DOORBELL_INLINE bool by_itself() const { return ring_.checkers == 0; }
  [[nodiscard]] DOORBELL_INLINE const CheckRing& ring() const { return ring_; }

  /// Turns added so far. The next ones are written by put(added() + i, ...), one lane each, then add(n).
  [[nodiscard]] DOORBELL_INLINE u64 added() const { return added_; }
  DOORBELL_INLINE void put(u64 turn, const Turn& t) const { *ring_.entry(turn) = t; }
  DOORBELL_INLINE void add(u32 n) { added_ += n; }

  /// Hands what has been added to the checkers. `newest`: the newest operation posted.
  DOORBELL_INLINE void publish(const Warp& warp, u64 newest) {
    warp.sync();
    if (warp.lane() != 0) return;
    store64_relaxed(ring_.newest(), newest);
    // Pairs with Checker::step(): before it the entries and what the loop has seen of the operations'
    // completions.
    store64_release_own(ring_.asked(), added_);
  }

  /// Turns finished, as of the last look: slots up to there are ready.
  [[nodiscard]] DOORBELL_INLINE u64 finished() const { return finished_; }
  [[nodiscard]] DOORBELL_INLINE bool pending() const { return finished_ != added_; }
  /// Looks how far the checkers are. found(turn, entry, finding) is called on every lane for each turn since
  /// the last look whose data was not as it should be.
  template <class Found>
  DOORBELL_INLINE void take(const Warp& warp, Found found) {
    u64 least = ~u64{0};
    for (u32 n = warp.lane(); n < ring_.checkers; n += Warp::size) {
      // Pairs with Checker::step().
      const u64 its = load64_acquire_own(ring_.finished(n));
      if (its < least) least = its;
    }
    warp.sync();
    least = reduce_min(warp, least) >> ring_.pieces_shift;
    reach(warp, least < added_ ? least : added_, found);
  }
  /// The same when the loop has done the work itself.
  template <class Found>
  DOORBELL_INLINE void reach(const Warp& warp, u64 until, Found found) {
    if (until == finished_) return;
    // A finding is counted before its turn is finished, so this number covers all turns up to `until`.
    const u64 findings = warp.shfl(load64_relaxed(ring_.findings()), 0);
    if (findings != findings_) {
      findings_ = findings;
      look_until_ = added_;  // findings of turns that are not finished are counted too
    }
    if (finished_ < look_until_) collect(warp, until, found);
    finished_ = until;
  }

  /// True when the loop has been `waiting` for turns for `limit` ticks in which none was finished. `now` is
  /// the loop's clock. To be asked regularly, with a take() between two calls: turns that were finished while
  /// this side did not run are not missing, so only the second look beyond the limit tells.
  [[nodiscard]] DOORBELL_INLINE bool stuck(bool waiting, u64 now, u64 limit) {
    if (!waiting || finished_ != progress_) {
      progress_ = finished_;
      progress_at_ = now;
      overdue_ = false;
    }
    if (now - progress_at_ <= limit) return false;
    const bool twice = overdue_;
    overdue_ = true;
    return twice;
  }
  struct Open {
    u64 turns;   ///< that are not finished
    u64 checks;  ///< of these, those whose data was to be checked
  };
  /// As of the last look.
  [[nodiscard]] DOORBELL_INLINE Open open() const {
    Open now = {added_ - finished_, 0};
    for (u64 turn = finished_; turn < added_; ++turn)
      if (ring_.entry(turn)->check != 0) ++now.checks;
    return now;
  }
  /// Waits for these turns no longer.
  DOORBELL_INLINE Open give_up() {
    const Open given_up = open();
    added_ = finished_;
    return given_up;
  }

  /// Ends the phase if checkers no longer answer the loop, which has been `waiting` for them for `limit`
  /// ticks (stuck()). What they have not finished counts as unchecked.
  template <class Guard>
  DOORBELL_INLINE void watch(const Warp& warp, bool waiting, u64 limit, Guard& guard, OpCounters& mine,
                             OpStats& out) {
    // Checkers may have been stopped together with this loop.
    if (!stuck(waiting, guard.clock(), guard.deadline(progress_at_, limit) - progress_at_)) return;
    const Open left = give_up();
    guard.stop(StopReason::timeout);
    if (warp.lane() != 0) return;
    mine.checked -= left.checks;
    out.unchecked += left.turns;
  }

  /// No more turns come.
  DOORBELL_INLINE void end(const Warp& warp) {
    warp.sync();
    if (warp.lane() == 0) store64_release_own(ring_.over(), 1);
  }

 private:
  template <class Found>
  DOORBELL_INLINE void collect(const Warp& warp, u64 until, Found found) {
    DOORBELL_NO_UNROLL
    for (u64 turn = finished_; turn < until; ++turn) {
      const u64 word = warp.shfl(load64_relaxed(ring_.found(turn)), 0);
      if (word == 0) continue;
      found(turn, *ring_.entry(turn), Finding::of(word));
      warp.sync();
      if (warp.lane() == 0) *ring_.found(turn) = 0;
    }
    warp.sync();
  }

  CheckRing ring_;
  u64 added_ = 0;
  u64 finished_ = 0;
  u64 findings_ = 0;
  u64 look_until_ = 0;
  u64 progress_ = ~u64{0};
  u64 progress_at_ = 0;
  bool overdue_ = false;  // stuck() was beyond its limit at the last look
};

}  // namespace doorbell
