// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The input and the reports of an I/O loop. Plain data in memory that host and GPU both reach.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/nvme/queue_pair.hpp>

#include "loop/check_ring.hpp"
#include "loop/loop_guard.hpp"
#include "loop/mirror.hpp"
#include "nvme/earlier_write.hpp"

namespace doorbell::nvme {

/// Commands in flight on one queue at most. A cid is a slot number below this, with the number of
/// the slot's use above it, so that a completion that comes twice is told from the slot's next use.
inline constexpr u32 kMaxWindow = 1023;
inline constexpr u32 kSlotBits = 10;
inline constexpr u32 kSlotMask = (1u << kSlotBits) - 1;
inline constexpr u32 kUseMask = (1u << (16 - kSlotBits)) - 1;

/// One phase: the same kind of I/O on every queue.
struct IoPhase : PhaseLimits {
  IoOpcode op = IoOpcode::read;
  bool random = false;
  bool timed = true;       ///< stamp every operation; false: only the phase as a whole
  bool verify = false;     ///< writes carry the pattern, reads are checked against it
  bool drain = false;      ///< post nothing, consume completions that are still there
  u32 verify_below = ~0u;  ///< check an I/O when a hash of its index is at most this (sampling)
  u32 nsid = 1;
  u32 blocks = 1;  ///< logical blocks an I/O
  u32 lba_bytes = 512;
  u64 base_lba = 0;
  u32 batch = 1;   ///< entries a doorbell
  u32 window = 1;  ///< commands in flight, <= kMaxWindow and < queue entries
  u64 seed = 1;
  u64 generation = 1;         ///< sequence of the first pass; each further pass over the span adds 1
  const u32* csts = nullptr;  ///< the controller status register; may be null

  [[nodiscard]] DOORBELL_INLINE StopReason lost() const {
    const u32 status = csts != nullptr ? load_relaxed(csts) : csts::ready;
    if (status == ~0u) return StopReason::removed;
    return (status & (csts::ready | csts::fatal)) == csts::ready ? StopReason::done : StopReason::reset;
  }
};

/// One queue's share of a phase and where its memory lies, in addresses of the initiator.
struct IoQueue {
  QueuePairMemory memory;
  u8* data = nullptr;  ///< slot s's buffer is at data + s * stride
  u64 stride = 0;      ///< bytes a slot: the I/O rounded up to whole pages
  u64 data_iova = 0;   ///< of slot 0
  u64 list_iova = 0;   ///< of slot 0's PRP list, when an I/O needs one
  u64 list_stride = 0;
  u64 page = 4096;
  u64 first = 0;               ///< this queue's first position (in I/Os from base_lba)
  u64 span = 1;                ///< positions that it owns
  u64 count = 0;               ///< I/Os to do; ~0 with a duration
  u64 written = 0;             ///< I/Os of the write phase that reads verify against
  u64 written_generation = 0;  ///< that phase's `generation`
  /// The writes before the write phase that `written` counts, the newest first. One is usual, and has
  /// no `bytes` where there is none; `more_earlier` has the others.
  EarlierWrite earlier;
  const EarlierWrite* more_earlier = nullptr;
  u32 more_earlier_count = 0;
  /// A bit for each of the first `unwritten_bits` positions, set when its write was refused, so that
  /// reading old data back is not counted a second time. May be null.
  u32* unwritten = nullptr;
  u64 unwritten_bits = 0;
  CheckRing checks;  ///< who makes and checks the data; the runner's
  Mirror* mirror =
      nullptr;  ///< `data` is that of this mirror of GPU memory; null: it is what the device uses
};

/// A queue pair that an IoLoop can drive: nvme::QueuePair, or the kernel's I/O calls in that shape.
template <class Q, class Warp>
concept LoopQueue = requires(Q& q, const Q& c, const Warp& warp, u32 n, Sqe (*build)(u32)) {
  requires std::constructible_from<Q, const typename Q::State&>;
  { c.state() } -> std::same_as<const typename Q::State&>;
  { c.qid() } -> std::same_as<u16>;
  { c.room() } -> std::same_as<u32>;      // entries that may be posted now
  q.post(warp, n, build);                 // entry i is build(i); seen by the device after ring()
  { q.ring(warp) } -> std::same_as<u32>;  // these return how many register writes they took
  { q.ring_cq(warp) } -> std::same_as<u32>;
  { c.cq_room() } -> std::same_as<u32>;       // completions that may come before ring_cq() is needed
  { c.cq_unrung() } -> std::same_as<u32>;     // completions taken since
  { c.bad_sq_heads() } -> std::same_as<u32>;  // completions whose sq_head was never posted
  // Lanes 0..count-1 each hold one of the next completions, `n` of which are expected at most.
  { q.poll(warp, n) } -> std::same_as<typename Q::Polled>;
  requires requires(const typename Q::Polled& p) {
    { p.count } -> ConvertibleTo<u32>;
    { p.mine } -> ConvertibleTo<const Cqe&>;
  };
};

/// The state of one command slot between post and completion.
namespace slot_state {
inline constexpr u32 free = 0, in_flight = 1, lost = 2, kind_mask = 3, use_shift = 2;
}

/// Working memory of one loop: shared memory on a GPU, the heap on a CPU. Contents live only during
/// a phase, but for `state`, whose use counts carry over.
struct IoScratch {
  u64* posted_at = nullptr;  ///< window entries
  u64* index = nullptr;      ///< window entries: which I/O of the phase
  u32* state = nullptr;      ///< window entries
  u16* free_ring = nullptr;  ///< kSlotMask + 1 cids: of each free slot, the one that its next use has
  u64* bins = nullptr;       ///< histogram::kBuckets counters, or null when not timed

  static constexpr u64 bytes(u32 window, u32 buckets) {
    return 16ull * window + 8ull * buckets + 4ull * window + 2ull * (kSlotMask + 1);
  }
};

/// Carves an IoScratch out of `memory` (aligned to 8, IoScratch::bytes() long).
DOORBELL_INLINE IoScratch carve_scratch(void* memory, u32 window, u32 buckets) {
  auto* words = static_cast<u64*>(memory);
  IoScratch s;
  s.posted_at = words;
  s.index = words + window;
  s.bins = words + 2ull * window;
  s.state = reinterpret_cast<u32*>(words + 2ull * window + buckets);
  s.free_ring = reinterpret_cast<u16*>(s.state + window);
  return s;
}

}  // namespace doorbell::nvme
