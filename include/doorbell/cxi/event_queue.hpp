// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini event queue from its reader's side: polls events and gives them back. The same source runs on a
// CPU thread (OneLane) and on a GPU warp (GpuWarp).
//
// Thread rule: one thread or one warp owns an EventQueue. Every call is collective.
#pragma once

#include <doorbell/cxi/events.hpp>
#include <doorbell/cxi/types.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::cxi {

inline constexpr u32 kEventQueueHead = 64;  ///< bytes of status before the first event

/// An EventQueue's whole state. The default values are those of a queue that has just been created.
struct EventQueueState {
  EventQueueMemory memory;      ///< where the queue lies; stays as it is
  u32 read = kEventQueueHead;   ///< offset of the next event
  u32 acked = kEventQueueHead;  ///< offset of the first event that was not given back
  bool drop_seq = false;        ///< the last value written to the device for dropped events
};

/// The reader's side of an event queue. The head of event_queue.hpp has the rules.
template <class Warp>
class EventQueue {
 public:
  using State = EventQueueState;  ///< what a kernel leaves for the next one

  /// Goes on where another EventQueue on the same memory stopped.
  DOORBELL_INLINE explicit EventQueue(const EventQueueState& state) : s_(state) {}
  /// Where another EventQueue on the same memory may go on.
  [[nodiscard]] DOORBELL_INLINE const EventQueueState& state() const { return s_; }
  /// Its handle in commands; 0: no event queue.
  [[nodiscard]] DOORBELL_INLINE u32 index() const { return s_.memory.index; }

  /// An event in the queue. `words` do not change until ack().
  struct Polled {
    u32 bytes = 0;                              ///< 0: no event
    EventType type = EventType::null_event;     ///< decides its layout
    ReturnCode return_code = ReturnCode::none;  ///< ok, or why it failed
    const u64* words = nullptr;                 ///< decode_event() reads them; in addresses of the reader
  };

  /// Takes the next event if there is one; skips NULL events. Does not wait.
  [[nodiscard]] DOORBELL_INLINE Polled poll(const Warp& warp) {
    Polled p;
    // At most as many NULL events as fit into a queue; otherwise a queue full of them would hold this thread.
    for (u32 left = s_.memory.bytes; left >= 16; left -= 16) {
      p = look(warp);
      if (p.bytes == 0) return p;
      take(p.bytes);
      if (p.type != EventType::null_event) return p;
    }
    p.bytes = 0;
    return p;
  }

  /// Bytes taken but not given back.
  [[nodiscard]] DOORBELL_INLINE u32 unacked() const {
    return s_.read >= s_.acked ? s_.read - s_.acked
                               : s_.read + (s_.memory.bytes - kEventQueueHead) - s_.acked;
  }

  /// Gives back everything taken so far. Returns the number of register writes: 0 or 1.
  DOORBELL_INLINE u32 ack(const Warp& warp) {
    if (s_.read == s_.acked) return 0;
    if (s_.read < s_.acked) {
      zero(warp, s_.acked, s_.memory.bytes);
      zero(warp, kEventQueueHead, s_.read);
    } else {
      zero(warp, s_.acked, s_.read);
    }
    s_.acked = s_.read;
    store_csr(warp);
    return 1;
  }

  /// The device's status: room, dropped events. Valid if EventQueueStatus::valid().
  [[nodiscard]] DOORBELL_INLINE EventQueueStatus status(const Warp& warp) const {
    u64 words[EventQueueStatus::kWords];
    for (u32 k = 0; k < EventQueueStatus::kWords; ++k) {
      const u64 mine = warp.lane() == 0 ? load64_acquire(at(0) + k) : 0;
      words[k] = warp.shfl(mine, 0);
    }
    return unpack<EventQueueStatus>(words);
  }
  /// Confirms to the device that dropped events have been noticed. Also gives back what was taken.
  DOORBELL_INLINE void acknowledge_drops(const Warp& warp) {
    s_.drop_seq = status(warp).drop_seq;
    if (ack(warp) == 0) store_csr(warp);
  }

 private:
  [[nodiscard]] DOORBELL_INLINE const u64* at(u32 offset) const {
    return reinterpret_cast<const u64*>(s_.memory.events + offset);
  }

  /// The event at the read offset. One lane reads it, so that all lanes agree.
  [[nodiscard]] DOORBELL_INLINE Polled look(const Warp& warp) const {
    const u64* const event = at(s_.read);
    u64 second = 0;
    u64 last = 0;
    if (warp.lane() == 0) {
      second = load64_acquire(event + 1);
      const u32 bytes = EventHead::bytes(second);
      // The device writes the last word last. The acquire orders the return code before later loads of the
      // rest of the event and of the data that it announces.
      if (bytes > 16 && s_.read + bytes <= s_.memory.bytes) last = load64_acquire(event + bytes / 8 - 1);
      if (bytes == 16) last = second;
    }
    second = warp.shfl(second, 0);
    last = warp.shfl(last, 0);
    Polled p;
    p.return_code = EventHead::code_of(last);
    if (p.return_code == ReturnCode::none) return p;
    warp.sync();  // makes what one lane acquired visible to the others
    p.bytes = EventHead::bytes(second);
    p.type = EventHead::type_of(second);
    p.words = event;
    return p;
  }

  DOORBELL_INLINE void take(u32 bytes) {
    s_.read += bytes;
    if (s_.read >= s_.memory.bytes) s_.read = kEventQueueHead;
  }

  DOORBELL_INLINE void zero(const Warp& warp, u32 from, u32 to) const {
    for (u32 offset = from + 8 * warp.lane(); offset < to; offset += 8 * Warp::size)
      store64_relaxed(reinterpret_cast<u64*>(s_.memory.events + offset), 0);
  }

  DOORBELL_INLINE void store_csr(const Warp& warp) const {
    EventQueueCsr csr;
    csr.rd_ptr = s_.acked / kSlotBytes;
    csr.event_drop_seq_no = s_.drop_seq;
    // The sync, then the release, order every lane's reads and zeros before the device's next stores there.
    warp.sync();
    if (warp.lane() == 0) store64_release(s_.memory.csr, pack(csr).w[0]);
  }

  EventQueueState s_;
};

/// A counting event from its user's side: the doorbell page, and the counts that the device writes back. One
/// lane makes each call.
class Counter {
 public:
  /// Plain data: any number of Counters may stand for one counting event.
  DOORBELL_INLINE explicit Counter(const CounterMemory& memory) : m_(memory) {}
  /// Its handle in commands; 0: no counter.
  [[nodiscard]] DOORBELL_INLINE u32 index() const { return m_.index; }
  /// True if it has a write-back, from which read() takes the counts.
  [[nodiscard]] DOORBELL_INLINE bool readable() const { return m_.writeback != nullptr; }

  /// @name Changes of the counts
  /// Each store is a release: it comes after everything that this thread wrote before, which the count
  /// announces.
  /// @{
  DOORBELL_INLINE void add_success(u64 n) const { store64_release(m_.doorbell + kSuccess, n & kMaxSuccess); }
  DOORBELL_INLINE void add_failure(u64 n) const { store64_release(m_.doorbell + kFailure, n & kMaxFailure); }
  DOORBELL_INLINE void reset_success() const { store64_release(m_.doorbell + kResetSuccess, 0); }
  DOORBELL_INLINE void reset_failure() const { store64_release(m_.doorbell + kResetFailure, 0); }
  /// @}

  /// Call only if readable(). The acquire orders the counts before later loads of the data that they stand
  /// for.
  [[nodiscard]] DOORBELL_INLINE CounterCounts read() const {
    const u64 word = load64_acquire(m_.writeback);
    return unpack<CounterCounts>(&word);
  }

  /// @name Words of the doorbell page
  /// @{
  static constexpr u32 kSuccess = 0, kFailure = 8, kResetSuccess = 16, kResetFailure = 24;
  /// @}

 private:
  CounterMemory m_;
};

}  // namespace doorbell::cxi
