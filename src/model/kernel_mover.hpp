// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How an engine in a kernel moves bytes. It reaches all memory itself; large copies go to the block's other
// warps.
#pragma once

#include "model/copy_jobs.hpp"
#include "model/deliberate_race.hpp"
#include "model/dma_place.hpp"
#include "model/fault_draw.hpp"

namespace doorbell::model {

/// The end of a copy: the last bytes are stored when all others are there, because an initiator that polls on
/// the data looks at the last byte. At most 16; these are stored by one lane.
struct CopyTail {
  u8* to;
  const u8* from;
  u32 bytes;

  [[nodiscard]] DOORBELL_INLINE static CopyTail of(u8* to, const u8* from, u64 bytes) {
    const u64 body = body_of(bytes);
    return {to + body, from + body, static_cast<u32>(bytes - body)};
  }
  /// The bytes before the tail: a multiple of 16.
  [[nodiscard]] DOORBELL_INLINE static u64 body_of(u64 bytes) {
    return bytes == 0 ? 0 : (bytes - 1) & ~u64{15};
  }
  DOORBELL_HD void store() const {
#if defined(DOORBELL_ON_GPU)
    // One store where there can be one.
    const u64 both = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from);
    if (bytes == 16 && (both & 15) == 0) {
      store16(reinterpret_cast<Word16*>(to), load16(reinterpret_cast<const Word16*>(from)));
      return;
    }
    if (bytes == 8 && (both & 7) == 0) {
      store64_relaxed(reinterpret_cast<u64*>(to), load64_relaxed(reinterpret_cast<const u64*>(from)));
      return;
    }
#endif
    if (bytes == 0) return;
    for (u32 i = 0; i + 1 < bytes; ++i) to[i] = from[i];
    if (bytes > 1) release_all();  // orders the bytes before the last one
    store_last(to + bytes - 1, from[bytes - 1]);
  }

  /// The byte that a poller looks at.
  DOORBELL_INLINE static void store_last(u8* to, u8 v) {
#if defined(DOORBELL_ON_GPU)
    *static_cast<volatile u8*>(to) = v;
#else
    __atomic_store_n(to, v, __ATOMIC_RELEASE);
#endif
  }
};

/// Of one lane. The result is as if each copy ended before the next begins; copies are complete after
/// settle().
class KernelMover {
 public:
  /// `helpers`: warps that work on `jobs`; 0: this lane copies all.
  DOORBELL_INLINE KernelMover(CopyJobs& jobs, u32 helpers) : jobs_(jobs), helpers_(helpers) {}

  [[nodiscard]] DOORBELL_INLINE bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    return copy(to.address, from.address, bytes);
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool copy(u8* to, const u8* from, u64 bytes) {
    const u64 body = CopyTail::body_of(bytes);
    if (body == 0) {
      // At once, because `from` may be a value that is on its way; behind the rest of its message.
      (void)settle();
      CopyTail::of(to, from, bytes).store();
      return true;
    }
    if (open_ == kOpen || meets({to, from, bytes})) (void)settle();
    if (helpers_ > 0) jobs_.ask({to, from, body});
    else copy_words(to, from, body, 0, 1);
    copies_[open_++] = {to, from, bytes};
    return true;
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool copy_damaged(const DmaPlace& to, const DmaPlace& from, u64 bytes,
                                                        u64 at) {
    (void)settle();
    const u8 damaged = from.address[at] ^ InjectedFault::kDamage;
    // The damage comes first, so that nobody sees good bytes behind the last one.
    if (at + 1 < bytes) to.address[at] = damaged;
    (void)copy(to.address, from.address, at);
    if (at + 1 < bytes) return copy(to.address + at + 1, from.address + at + 1, bytes - at - 1);
    (void)settle();
    release_all();  // orders the bytes before the last one
    CopyTail::store_last(to.address + at, damaged);
    return true;
  }
  template <class Copy>
  [[nodiscard]] DOORBELL_HD bool misplaced(Copy&& copy) {
    (void)settle();
#if !defined(DOORBELL_ON_GPU)
    const DeliberateRace race;
#endif
    return copy() && settle();
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool atomic(const DmaPlace& at, bool adds, u64 operand, u64 compare,
                                                  u64& old) {
    (void)settle();
    release_all();  // orders what earlier requests brought before the atomic, which may announce it
    auto* const word = reinterpret_cast<u64*>(at.address);
#if defined(DOORBELL_ON_GPU)
    auto* const gpu_word = reinterpret_cast<unsigned long long*>(word);
    old = adds ? atomicAdd(gpu_word, operand) : atomicCAS(gpu_word, compare, operand);
#else
    old = compare;
    if (adds) old = __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    else __atomic_compare_exchange_n(word, &old, operand, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#endif
    return true;
  }
  /// A copy of each lane, which do not touch each other; all lanes call it together, and all copies are
  /// complete when it returns. `to_gpu`: nothing but this GPU looks at `to`.
  template <class Warp>
  DOORBELL_HD void copy_all(const Warp& warp, u8* to, const u8* from, u32 bytes, bool to_gpu) {
    const u64 body = CopyTail::body_of(bytes);
    const bool aligned = ((reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) & 15) == 0;
    const bool here = body == 0 || (aligned && body <= kByLane * sizeof(Word16));
    const u64 handed_over = warp.ballot(!here);
    if (handed_over != 0) {
      if (helpers_ == 0 && !here) copy_words(to, from, body, 0, 1);
      if (helpers_ > 0) jobs_.ask(warp, handed_over, {to, from, body});
    }
    if (here && body > 0) {
      Word16 words[kByLane];
      DOORBELL_UNROLL
      for (u32 k = 0; k < kByLane; ++k)
        if (k * sizeof(Word16) < body) words[k] = load16(reinterpret_cast<const Word16*>(from) + k);
      DOORBELL_UNROLL
      for (u32 k = 0; k < kByLane; ++k)
        if (k * sizeof(Word16) < body) store16(reinterpret_cast<Word16*>(to) + k, words[k]);
    }
    if (handed_over != 0 && warp.lane() == 0) jobs_.finish(helpers_);
    warp.sync();
    // Orders the bodies, which other warps have stored too, before the tails.
    if (warp.ballot(body > 0 && !to_gpu) != 0) release_all();
    else if (warp.ballot(body > 0) != 0) release_all_own();
    CopyTail::of(to, from, bytes).store();
    warp.sync();
  }
  [[nodiscard]] DOORBELL_INLINE static bool full() {
    return false;
  }
  [[nodiscard]] DOORBELL_INLINE bool pending() const {
    return open_ > 0;
  }
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool settle() {
    if (open_ == 0) return true;
    jobs_.finish(helpers_);
    release_all();  // orders all bodies before all tails
    for (u32 i = 0; i < open_; ++i) CopyTail::of(copies_[i].to, copies_[i].from, copies_[i].bytes).store();
    open_ = 0;
    return true;
  }

 private:
  static constexpr u32 kOpen = CopyJobs::kRoom;
  static constexpr u32 kByLane = 16;  ///< parts that a lane moves by itself

  /// True if the copy has to wait for an open one.
  [[nodiscard]] DOORBELL_GPU_NOINLINE bool meets(const CopyJob& copy) const {
    for (u32 i = 0; i < open_; ++i)
      if (meet(copy, copies_[i])) return true;
    return false;
  }

  CopyJobs& jobs_;
  u32 helpers_;
  u32 open_ = 0;
  CopyJob copies_[kOpen];
};

}  // namespace doorbell::model
