// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini command queue from the initiator's side: posts and rings, and tracks what the device has read.
// The same source runs on a CPU thread (OneLane) and on a GPU warp (GpuWarp).
//
// Thread rule: one thread or one warp owns a CommandQueue, and no other touches its ring. Every call is
// collective: all lanes make it together, with the same arguments unless a comment says otherwise.
//
// Positions count units of 32 bytes; a slot is two units. The first four slots belong to the device.
#pragma once

#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/events.hpp>
#include <doorbell/cxi/types.hpp>
#include <doorbell/warp.hpp>

namespace doorbell::cxi {

/// A CommandQueue's whole state: plain data, so that it can stay in memory between two kernels. The default
/// values are those of a queue that has just been created.
struct CommandQueueState {
  CommandQueueMemory memory;      ///< where the queue lies; stays as it is
  u32 wp32 = 2 * kStatusSlots;    ///< the place of the next command
  u32 rung32 = 2 * kStatusSlots;  ///< the position at the last doorbell
  u32 rp32 = 2 * kStatusSlots;    ///< the device's read position at the last look at the status
  u32 bad_status = 0;             ///< CommandQueue::bad_status()
};

/// The initiator's side of a command queue. The head of command_queue.hpp has the rules.
template <class Warp>
class CommandQueue {
 public:
  using State = CommandQueueState;  ///< what a kernel leaves for the next one
  /// If fewer units seem free, the status is read again.
  static constexpr u32 kFewUnits = 16;

  /// Continues from the state of another CommandQueue on the same ring.
  DOORBELL_INLINE explicit CommandQueue(const CommandQueueState& state) : s_(state) {}
  /// Where another CommandQueue on the same ring may go on.
  [[nodiscard]] DOORBELL_INLINE const CommandQueueState& state() const { return s_; }
  /// Its number on the NIC.
  [[nodiscard]] DOORBELL_INLINE u32 index() const { return m().index; }

  /// Units that may be posted now. Reads the device's status only if fewer than `wanted` seem free.
  [[nodiscard]] DOORBELL_INLINE u32 room(const Warp& warp, u32 wanted = 1) {
    if (free_units() < (wanted > kFewUnits ? wanted : kFewUnits)) (void)status(warp);
    return free_units();
  }

  /// The device's status: how far it has read, and which errors it found.
  [[nodiscard]] DOORBELL_INLINE CommandQueueStatus status(const Warp& warp) {
    // The acquire orders this load before later stores of commands to slots that the device has read.
    u64 word = warp.lane() == 0 ? load64_acquire(reinterpret_cast<const u64*>(m().ring)) : 0;
    word = warp.shfl(word, 0);
    warp.sync();
    const auto st = unpack<CommandQueueStatus>(&word);
    const u32 behind = distance(s_.rp32, s_.rung32);
    if (st.rd_ptr < kStatusSlots || st.rd_ptr >= m().slots || distance(s_.rp32, 2 * st.rd_ptr) > behind)
      ++s_.bad_status;
    else s_.rp32 = 2 * st.rd_ptr;
    return st;
  }
  /// How often the status had a position that was never announced to the device: a protocol error.
  [[nodiscard]] DOORBELL_INLINE u32 bad_status() const { return s_.bad_status; }

  /// Writes one command, aligned to its size with NOOPs before it. Returns false and writes nothing if there
  /// is no room. The device does not see the command before ring().
  template <class C>
  [[nodiscard]] DOORBELL_INLINE bool post(const Warp& warp, const C& command) {
    const u32 units = command_units(command);
    const u32 pad = (0u - s_.wp32) & (units - 1);
    if (room(warp, pad + units) < pad + units) return false;
    if (pad != 0) pad_with_noops(warp, pad);
    Word16* const at = ring_at(s_.wp32);
    DOORBELL_NO_UNROLL
    for (u32 p = warp.lane(); p < 2 * units; p += Warp::size) store16(at + p, command_part(command, p));
    s_.wp32 = after(s_.wp32, units);
    return true;
  }

  /// Writes `n` commands of one type one after the other. build(i) makes command i. There must be room for
  /// all of them and for a NOOP shorter than one command. Not for triggered queues.
  ///
  /// A lane writes 16 bytes, so a warp's store covers whole commands without gaps. All lanes call build
  /// together, so build may be collective; it may be called several times with one i.
  template <class Build>
  DOORBELL_INLINE void post_puts(const Warp& warp, u32 n, Build build) {
    constexpr u32 kUnits = decltype(build(0u))::kWords / 4;
    constexpr u32 kParts = 2 * kUnits;
    if (const u32 pad = (0u - s_.wp32) & (kUnits - 1); pad != 0) pad_with_noops(warp, pad);
    if constexpr (Warp::size == 1) {
      u32 at = s_.wp32;
      for (u32 i = 0; i < n; ++i) {
        const auto words = encode(build(i));
        for (u32 p = 0; p < kParts; ++p) store16(ring_at(at) + p, words.part(p));
        at = after(at, kUnits);
      }
    } else {
      const u32 part = warp.lane() % kParts;
      // The rounds do not depend on each other: when they are unrolled, their arithmetic overlaps.
      DOORBELL_UNROLL_4
      for (u32 base = 0; base < n; base += Warp::size / kParts) {
        const u32 i = base + warp.lane() / kParts;
        const Word16 mine = command_part(build(i < n ? i : n - 1), part);
        if (i < n) store16(ring_at(after(s_.wp32, i * kUnits)) + part, mine);
      }
    }
    s_.wp32 = after(s_.wp32, n * kUnits);
  }

  /// True if something was posted since the last ring().
  [[nodiscard]] DOORBELL_INLINE bool pending() const { return s_.wp32 != s_.rung32; }

  /// Rings one doorbell for everything posted so far. Returns the number of register writes: 0 or 1.
  DOORBELL_INLINE u32 ring(const Warp& warp) {
    complete_slot(warp);
    if (!pending()) return 0;
    // The sync orders every lane's stores to the ring before lane 0's release.
    warp.sync();
    if (warp.lane() == 0) store_write_pointer();
    s_.rung32 = s_.wp32;
    return 1;
  }

  /// ring() that also writes the first one or two slots of commands into the launch page, which saves the
  /// device a fetch. If the device is still busy with other commands, this is the same as ring(). Returns the
  /// number of register writes.
  DOORBELL_INLINE u32 ring_low_latency(const Warp& warp) {
    complete_slot(warp);
    if (!pending()) return 0;
    // The device takes a window only when it has read everything before it.
    if (s_.rp32 != s_.rung32) (void)status(warp);
    u32 first = s_.rung32 / 2;
    const u32 slots = distance(s_.rung32, s_.wp32) / 2;
    warp.sync();  // lanes read from the ring what other lanes wrote
    if (s_.rp32 != s_.rung32 || header_at(first).size_code == 3) return ring(warp);
    u32 take = 1;
    u32 window = kWindow64;
    if (slots >= 2 && (first & 1) == 0) {
      take = 2;
      window = kWindowAligned;
    } else if (slots >= 3 && is_noop(header_at(first))) {
      first = next_slot(first);
      if (header_at(first).size_code == 3) return ring(warp);
      take = 2;
      window = kWindowUnaligned;
    }
    write_window(warp, window, first, take);
    const u32 end = after(2 * first, 2 * take);
    const bool more = end != s_.wp32;
    // The sync orders the window before the write pointer, which shows what follows the window.
    warp.sync();
    if (warp.lane() == 0) {
      if (more) store_write_pointer();
      else flush_device_stores();
    }
    s_.rung32 = s_.wp32;
    return more ? 2 : 1;
  }

 private:
  // Offsets of the low-latency windows in the launch page; each has 16 places of 64 bytes.
  static constexpr u32 kWindow64 = 1024, kWindowAligned = 2048, kWindowUnaligned = 3072;
  static constexpr u32 kWindowSlots = 16;
  static constexpr u32 kSlotWords = kSlotBytes / sizeof(u64);

  [[nodiscard]] DOORBELL_INLINE const CommandQueueMemory& m() const { return s_.memory; }
  [[nodiscard]] DOORBELL_INLINE u32 size32() const { return 2 * m().slots; }
  [[nodiscard]] DOORBELL_INLINE Word16* ring_at(u32 unit) const { return m().ring + u64{unit} * 2; }
  /// The position `n` units behind `at`; `n` is less than a lap.
  [[nodiscard]] DOORBELL_INLINE u32 after(u32 at, u32 n) const {
    const u32 sum = at + n;
    return sum >= size32() ? sum - size32() + 2 * kStatusSlots : sum;
  }
  [[nodiscard]] DOORBELL_INLINE u32 next_slot(u32 slot) const { return after(2 * slot, 2) / 2; }
  /// Units from one position forward to another.
  [[nodiscard]] DOORBELL_INLINE u32 distance(u32 from, u32 to) const {
    return to >= from ? to - from : size32() - 2 * kStatusSlots - from + to;
  }
  /// One slot always stays free, so that a full ring differs from an empty one.
  [[nodiscard]] DOORBELL_INLINE u32 free_units() const {
    return size32() - 2 * kStatusSlots - 2 - distance(s_.rp32, s_.wp32);
  }

  /// The device reads only the first word of a NOOP.
  DOORBELL_INLINE void write_noop(u32 unit, u64 word) const {
    store64_relaxed(reinterpret_cast<u64*>(ring_at(unit)), word);
  }
  DOORBELL_INLINE void pad_with_noops(const Warp& warp, u32 pad) {
    if (m().triggered) {
      // Commands of 64 bytes or more: the gap up to an alignment of 128 is one slot.
      constexpr u64 noop = u64{static_cast<u32>(CommandType::counter)} | 1 << 2;
      for (u32 k = 0; k < pad; k += 2)
        if (warp.lane() == 0) write_noop(after(s_.wp32, k), noop);
    } else {
      for (u32 k = warp.lane(); k < pad; k += Warp::size) write_noop(after(s_.wp32, k), 0);
    }
    s_.wp32 = after(s_.wp32, pad);
  }
  /// Fills up a slot, because the write pointer counts whole slots.
  DOORBELL_INLINE void complete_slot(const Warp& warp) {
    if ((s_.wp32 & 1) == 0) return;
    if (warp.lane() == 0) write_noop(s_.wp32, 0);
    s_.wp32 = after(s_.wp32, 1);
  }

  /// One lane calls it. The release orders the commands in the ring before the write pointer. If the launch
  /// page is write-combining, the flushes order both before this thread's later stores.
  DOORBELL_INLINE void store_write_pointer() const {
    flush_device_stores();
    store64_release(reinterpret_cast<u64*>(m().launch), s_.wp32 / 2);
    flush_device_stores();
  }

  [[nodiscard]] DOORBELL_INLINE CommandHeader header_at(u32 slot) const {
    return header_of(load64_relaxed(reinterpret_cast<const u64*>(ring_at(2 * slot))));
  }
  [[nodiscard]] DOORBELL_INLINE static bool is_noop(const CommandHeader& h) { return h.opcode == 0; }

  /// Copies `take` slots, from `first` on, into a window. Each word is a release. The ring holds the same
  /// commands, and a device that does not take the window reads them from the ring.
  DOORBELL_INLINE void write_window(const Warp& warp, u32 window, u32 first, u32 take) const {
    const u64* const from = reinterpret_cast<const u64*>(ring_at(2 * first));
    u64* const to = reinterpret_cast<u64*>(m().launch + window + first % kWindowSlots * kSlotBytes);
    if (warp.lane() == 0) flush_device_stores();
    DOORBELL_NO_UNROLL
    for (u32 k = warp.lane(); k < take * kSlotWords; k += Warp::size)
      store64_release(to + k, load64_relaxed(from + k));
  }

  CommandQueueState s_;
};

}  // namespace doorbell::cxi
