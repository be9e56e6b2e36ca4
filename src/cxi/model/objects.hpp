// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the device keeps for each object that its users created. The device's thread owns all of it; set-up
// calls change it between two rounds of that thread.
#pragma once

#include <doorbell/cxi/counter_commands.hpp>
#include <doorbell/cxi/target_commands.hpp>

#include <array>
#include <vector>

#include "cxi/cassini.hpp"
#include "cxi/model/event_producer.hpp"

namespace doorbell::cxi {

/// Memory of one address context.
struct MappedMemory {
  Iova begin = 0;
  u64 bytes = 0;
  Access access = Access::read_write;
  model::DmaPlace base{};
  [[nodiscard]] bool covers(Iova at, u64 n) const {
    return at >= begin && at - begin <= bytes && n <= bytes - (at - begin);
  }
  [[nodiscard]] model::DmaPlace at(Iova iova) const { return base + (iova - begin); }
};

/// Memory of a portals entry, as an APPEND command described it.
struct ListEntry {
  Append append;
  const MappedMemory* memory = nullptr;  ///< the mapping that contains all of it, as of `epoch`
  u64 epoch = 0;
  [[nodiscard]] bool has(u32 flag) const { return (append.flags & flag) != 0; }
};

struct TableEntry {
  u32 index = 0;
  u32 vni = 0;
  u32 pid = 0;
  u32 idx = 0;
  u32 eq = 0;
  PtlteState state = PtlteState::reset;
  u64 operations = 0;
  bool fault_applied = false;                   ///< the fault that disables portals entries
  std::array<std::vector<ListEntry>, 2> lists;  ///< priority, overflow
};

/// A command that waits for a count.
struct Trigger {
  u64 serial = 0;  ///< with equal thresholds, the older trigger fires first
  CounterOpcode opcode = CounterOpcode::trig_event;
  CounterFields fields;
  NomatchDma dma;
  u32 queue = 0;  ///< the queue of its command
};
[[nodiscard]] inline bool later(const Trigger& a, const Trigger& b) {
  const u64 first = a.fields.threshold, second = b.fields.threshold;
  return first != second ? first > second : a.serial > b.serial;
}

struct CountingEvent {
  u32 index = 0;
  u64 success = 0;
  u32 failure = 0;
  // Acknowledgements since the counts were last updated.
  u64 new_success = 0;
  u32 new_failure = 0;
  bool dirty = false;
  u64* doorbell = nullptr;
  bool writes_back = false;
  QueuePlace writeback;
  std::vector<Trigger> waiting;  ///< a heap, ordered by later()
};

struct WorkQueue {
  u32 index = 0;
  u32 ordinal = 0;  ///< position among the device's queues, so that faults can be repeated
  CommandQueueKind kind = CommandQueueKind::transmit;
  u32 eq = 0;
  u32 slots = 0;
  QueuePlace ring;
  u8* launch = nullptr;
  u32 vni = 0;  ///< of the queue's communication profile

  u32 read32 = 2 * kStatusSlots;  ///< units of 32 bytes
  u32 write = kStatusSlots;       ///< slots
  CommandQueueStatus status;
  u64 published = 0;  ///< the status word now in memory
  bool stopped = false;
  u64 serial = 0;                ///< operations so far
  bool fault_applied = false;    ///< the fault that stops the read pointer
  u64 ready_ns = 0;              ///< no command starts before this time
  u32 scan = 0;                  ///< the window place to look at next
  const u64* suspect = nullptr;  ///< a write at a place that does not come next
  u64 suspect_since_ns = 0;
  u64 torn_since_ns = 0;  ///< when a window was first seen partly written; 0: never
  bool has_cstate = false;
  CState cstate;
  std::vector<u64> staged;  ///< commands fetched from GPU memory

  // The destination of the last operation; valid until the next set-up call.
  u64 epoch = 0;
  u32 lac = 0;
  const MappedMemory* memory = nullptr;
  Dfa dfa;
  TableEntry* pte = nullptr;
};

}  // namespace doorbell::cxi
