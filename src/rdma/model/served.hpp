// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The state that a ServedEngine works on, and how its host talks to it. Plain data, the same for a kernel and
// for a thread of the CPU that runs its code.
#pragma once

#include "model/fault_draw.hpp"
#include "model/link.hpp"
#include "rdma/model/engine_counters.hpp"
#include "rdma/model/engine_rule.hpp"
#include "rdma/model/memory_keys.hpp"
#include "rdma/model/qp.hpp"

namespace doorbell::rdma {

inline constexpr u32 kServedQps = 64;       ///< of one engine, at most
inline constexpr u32 kServerThreads = 256;  ///< of a block: one warp serves, the others move data

/// Between `pause` and `resume` an engine touches nothing, and the host may read and write its queue pairs.
struct ServerOrder {
  enum class Kind : u32 { pause, resume, end };
  Kind kind = Kind::end;
  u32 queue_pairs = 0;  ///< for resume: so many images are the engine's queue pairs from now on
};

struct alignas(64) ServerAnswer {
  u32 sequence;  ///< of the last order carried out
};

/// The counts of one engine up to its last pause.
struct ServedCounts {
  EngineCounters counters;
  u64 violations;
  u64 injected[model::kFaultKinds];
};

/// The job that all engines of a device are given when they start. All pointers are addresses that they can
/// use.
struct ServerJob {
  MemoryKeys keys;
  EngineRule rule;
  model::FaultDraw faults;
  model::LinkRule link;
  u64* link_free_at;
  u32* gone;   ///< 1: the device has gone, no engine does anything more
  u32* alive;  ///< what initiators look at: 1, later 0
  const u32* sequences;
  const ServerOrder* orders;
  ServerAnswer* answers;
  Qp* images;  ///< kServedQps for each engine
  ServedCounts* counts;
};

}  // namespace doorbell::rdma
