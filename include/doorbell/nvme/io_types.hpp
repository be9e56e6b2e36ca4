// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What an I/O loop is told and what it reports. Plain data in memory that host and GPU both reach.
#pragma once

#include <doorbell/nvme/queue_pair.hpp>
#include <doorbell/pattern.hpp>

namespace doorbell::nvme {

/// Commands in flight on one queue at most. A cid is a slot number below this, with the number of
/// the slot's use above it, so that a completion that comes twice is told from the slot's next use.
inline constexpr u32 kMaxWindow = 1023;
inline constexpr u32 kSlotBits = 10;
inline constexpr u32 kSlotMask = (1u << kSlotBits) - 1;
inline constexpr u32 kUseMask = (1u << (16 - kSlotBits)) - 1;

/// One phase: the same kind of I/O on every queue. Times are in ticks of the loop's clock.
struct IoPhase {
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
  u64 generation = 1;  ///< sequence of the first pass; each further pass over the span adds 1
  u64 ns_per_tick_q24 = 1u << 24;
  u64 timeout_ticks = 0;
  u64 late_ticks = 0;
  u64 check_ticks = 0;        ///< how often to look at the stop flag, the deadline and the device
  u64 duration_ticks = 0;     ///< stop posting after this long; 0: by count only
  const u32* stop = nullptr;  ///< non-zero: stop posting, drain, report
  const u32* csts = nullptr;  ///< the controller status register: tells that the device is gone or was reset
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
  /// A bit for each of the first `unwritten_bits` positions, set when its write was refused, so that
  /// reading old data back is not counted a second time. May be null.
  u32* unwritten = nullptr;
  u64 unwritten_bits = 0;
};

/// Why a loop stopped posting; of several the last in this order. `reset`: the controller is no longer
/// ready (somebody reset it) or reports a fatal status.
enum class StopReason : u32 { done = 0, requested, duration, timeout, reset, removed };

/// What one queue did in one phase, as far as it is plain sums.
struct IoCounters {
  u64 posted = 0;
  u64 succeeded = 0;
  u64 failed = 0;      ///< completed with a status other than success
  u64 timed_out = 0;   ///< no completion within the deadline
  u64 aborted = 0;     ///< in flight when the device went away or was reset
  u64 late = 0;        ///< completed, but after late_ticks or after the deadline
  u64 duplicated = 0;  ///< completions of commands that were not in flight
  u64 protocol = 0;    ///< wrong sq_id, sq_head out of range
  u64 checked = 0;
  u64 unverifiable = 0;
  u64 corrupt = 0;
  u64 misplaced = 0;
  u64 stale = 0;
  u64 missing = 0;
  u64 polls = 0;
  u64 empty_polls = 0;
  u64 sq_doorbells = 0;
  u64 cq_doorbells = 0;
  u64 register_writes = 0;
  u64 begin_ns = 0;  ///< first post, in ns of a clock that all queues share
  u64 end_ns = 0;    ///< last completion
  u64 timed = 0;     ///< operations in the figures below
  u64 min_ns = ~u64{0};
  u64 max_ns = 0;
  u64 sum_ns = 0;
  double sum_sq_ns = 0;
  u64 busy_ticks = 0;  ///< begin_ns to end_ns by the loop's own clock
  u64 build_ticks = 0;
  u64 enqueue_ticks = 0;
  u64 sq_doorbell_ticks = 0;
  u64 cq_poll_ticks = 0;
  u64 cq_doorbell_ticks = 0;
};

/// The counters, and the tables that rare events go into.
struct IoStats : IoCounters {
  StopReason stop = StopReason::done;

  static constexpr u32 kKept = 8;
  struct StatusCount {
    u16 type_and_code = 0;
    u64 count = 0;
  };
  StatusCount statuses[kKept];  ///< the last entry also counts what found no place
  struct Failure {
    pattern::Verdict verdict = pattern::Verdict::ok;
    u64 address = 0;
    u64 sequence = 0;
  };
  u32 failures = 0;  ///< entries of first_failures in use
  Failure first_failures[kKept];
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
