// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The parameter block of a path's kernels: one source for the host that fills it and the kernel.
#pragma once

#include "loop/op_stats.hpp"

namespace doorbell::measure {

/// Threads of a block of checkers at most; each warp is a checker of the block's queue.
inline constexpr u32 kCheckThreads = 256;

/// Pointers are GPU addresses of memory that the host reaches too, one element a queue each.
template <class Phase, class Item, class State>
struct GpuJob {
  Phase phase;
  const Item* items = nullptr;
  State* states = nullptr;
  u32* slots = nullptr;  ///< Work::kept_words(phase.window) words a queue: slot states between phases
  OpStats* stats = nullptr;
  u64* bins = nullptr;  ///< histogram::kBuckets counters a queue
};

/// The parameter block of the kernel that checks payloads beside it. `items` are those of the GpuJob.
template <class Phase, class Item>
struct CheckJob {
  Phase phase;
  const Item* items = nullptr;
  u32 blocks = 1;  ///< for each queue, one behind the other
};

}  // namespace doorbell::measure
