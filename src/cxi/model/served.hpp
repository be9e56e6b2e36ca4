// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The state that a ServedEngine works on, and how its host talks to it. Plain data, the same for a kernel and
// for a thread of the CPU that runs its code.
#pragma once

#include "cxi/model/engine_rule.hpp"
#include "cxi/model/objects.hpp"
#include "model/due_heap.hpp"
#include "model/fault_draw.hpp"
#include "model/link.hpp"

namespace doorbell::cxi {

/// The objects that find room in a block's shared memory: twice as many queues as a run has, with a buffer at
/// each end, and more for what the run's host has.
struct ServedRoom {
  static constexpr u32 kTransmitQueues = 144;
  static constexpr u32 kTargetQueues = 16;
  static constexpr u32 kEventQueues = 160;
  static constexpr u32 kCounters = 144;
  static constexpr u32 kEntries = 144;
  static constexpr u32 kMemories = 320;
  static constexpr u32 kDomains = 16;
  static constexpr u32 kOwners = 1;
};
inline constexpr u32 kServedEntries = 144;   ///< list entries there; the others lie in the GPU's memory
inline constexpr u32 kServedLate = 1 << 16;  ///< reports that wait for their time
inline constexpr u32 kServerThreads = 256;   ///< of the block: one warp serves, the others move data
using LateItems = model::FlatItems<Acknowledgement>;

struct ServerOrder {
  enum class Kind : u32 { change, end };
  Kind kind = Kind::end;
  Change change = {};
};

struct alignas(64) ServerAnswer {
  u32 sequence;  ///< of the last order carried out
};

/// The engine's counts up to its last order.
struct ServedCounts {
  EngineCounters counters;
  u64 injected[model::kFaultKinds];
};

/// The job that the engine is given when it starts. All pointers are addresses that it can use.
struct ServerJob {
  EngineRule rule;
  model::FaultDraw faults;
  model::LinkRule link;
  u64* link_free_at;
  u32* gone;   ///< 1: the device has gone
  u32* alive;  ///< what initiators look at: 1, later 0
  const u32* sequences;
  const ServerOrder* orders;
  ServerAnswer* answers;
  ServedCounts* counts;
  ListEntry* list_entries;  ///< those for which kServedEntries are too few
  Trigger* triggers;        ///< kMaxTriggers
  LateItems late;
};

}  // namespace doorbell::cxi
