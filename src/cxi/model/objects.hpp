// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The device's records of each object that its users created. Plain data, which its engine owns: in a kernel,
// in the memory of a block. Objects name each other by number.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/types.hpp>

#include "cxi/model/event_producer.hpp"
#include "model/dma_place.hpp"

namespace doorbell::cxi {

inline constexpr u32 kNobody = ~0u;

/// Memory of one address context.
struct MappedMemory {
  Iova begin = 0;
  u64 bytes = 0;  ///< 0: none
  Access access = Access::read_write;
  u32 owner = 0;  ///< the client whose commands may use it
  u32 lac = 0;    ///< the address context, of that client
  model::DmaPlace base{};
  bool on_gpu = false;  ///< in the memory of a GPU, where a kernel is the device: nothing else looks at it
  [[nodiscard]] DOORBELL_INLINE bool covers(Iova at, u64 n) const {
    return at >= begin && at - begin <= bytes && n <= bytes - (at - begin);
  }
  [[nodiscard]] DOORBELL_INLINE model::DmaPlace at(Iova iova) const { return base + (iova - begin); }
};

/// Memory of a portals entry, as an APPEND command described it.
struct ListEntry {
  Append append;
  u32 memory = kNobody;  ///< the mapping that contains all of it, as of `epoch`
  u64 epoch = 0;
  u32 next = kNobody;  ///< in its list, or of those that are free
  [[nodiscard]] DOORBELL_INLINE bool has(u32 flag) const { return (append.flags & flag) != 0; }
};

/// Numbers of things that name their successor.
struct Chain {
  u32 first = kNobody;
  u32 last = kNobody;
  [[nodiscard]] DOORBELL_INLINE bool empty() const { return first == kNobody; }
};

struct TableEntry {
  bool exists = false;
  u32 index = 0;
  u32 vni = 0;
  u32 pid = 0;
  u32 idx = 0;
  bool mapped = true;  ///< (vni, pid, idx) name it
  u32 owner = 0;
  u32 eq = 0;
  bool long_events = false;  ///< also where the short form would do
  bool matching = false;     ///< a memory takes what has its match bits
  PtlteState state = PtlteState::reset;
  u64 operations = 0;
  bool fault_applied = false;  ///< the fault that disables portals entries
  Chain lists[2];              ///< of list entries: priority, overflow
};

/// A command that waits for a count.
struct Trigger {
  CounterOpcode opcode = CounterOpcode::trig_event;
  CounterFields fields;
  NomatchDma dma;
  u32 queue = 0;  ///< the queue of its command
  u32 owner = 0;  ///< that queue's
  u32 next = kNobody;
};

struct CountingEvent {
  bool exists = false;
  u32 index = 0;
  u32 owner = 0;
  u64 success = 0;
  u32 failure = 0;
  // Acknowledgements since the counts were last updated.
  u64 new_success = 0;
  u32 new_failure = 0;
  bool dirty = false;
  u32 next_dirty = kNobody;
  u64* doorbell = nullptr;
  bool writes_back = false;
  bool on_request = false;  ///< the write-back: by a GET command, a failure, and where `replaced`
  bool replaced = false;    ///< counts were set or reset, which is written back in any case
  QueuePlace writeback;
  Chain waiting;  ///< triggers, the lowest threshold first, and with equal ones the older first
};

struct WorkQueue {
  u32 index = 0;
  u32 ordinal = 0;  ///< position among the device's queues, so that faults can be repeated
  CommandQueueKind kind = CommandQueueKind::transmit;
  u32 owner = 0;         ///< its commands name objects of this client only
  bool foreign = false;  ///< its initiator may change commands while they are looked at
  u32 eq = 0;
  u32 slots = 0;
  QueuePlace ring;
  u8* launch = nullptr;
  /// The device only reads the launch page, which others see it write to late or not at all: no windows, and
  /// a write pointer is new if it differs from the last one.
  bool read_only_launch = false;
  u64 last_doorbell = 0;
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

  // The destination of the last operation; valid until the next set-up call.
  u64 epoch = 0;
  u32 lac = 0;
  u32 memory = kNobody;
  Dfa dfa;
  u32 pte = kNobody;

  [[nodiscard]] DOORBELL_INLINE bool has_commands() const { return !stopped && read32 != 2 * write; }
};

/// A process's name in a network.
struct Domain {
  u32 vni = 0;  ///< 0: none
  u32 pid = 0;
};
/// A communication profile: the name that a client's LCID commands have for a network.
struct Profile {
  u32 owner = 0;
  u32 lcid = 0;
  u32 vni = 0;  ///< 0: none
};
inline constexpr u32 kMaxProfiles = 16;  ///< of a client

struct OperationResult {
  ReturnCode code = ReturnCode::ok;
  bool by_target = false;  ///< the code is from the end whose memory was to be reached
  bool matched = false;    ///< a matching portals entry has carried it out, maybe in part
  u8 list = 0;             ///< PortalsList; of the memory that matched
  bool rendezvous = false;
};

/// The report about an operation to its initiator.
struct Acknowledgement {
  DmaFlags flags;
  bool is_get = false;
  OperationResult result;
  u32 ct = 0;
  u32 eq = 0;
  u32 owner = 0;  ///< the initiator
  u64 bytes = 0;
  u64 user_ptr = 0;
};

/// The objects that an engine has room for. `R` has kTransmitQueues, kTargetQueues, kEventQueues, kCounters,
/// kEntries, kMemories, kDomains and kOwners.
template <class R>
struct Objects {
  using Room = R;
  static constexpr u32 kQueues = R::kTransmitQueues + R::kTargetQueues;
  /// The place of the queue with this number.
  [[nodiscard]] DOORBELL_INLINE static u32 place_of(u32 queue) {
    return queue < kMaxTransmitQueues ? queue : R::kTransmitQueues + (queue - kMaxTransmitQueues);
  }

  // By number; queues by place.
  WorkQueue queues[kQueues];
  EventProducer event_queues[R::kEventQueues];
  CountingEvent counters[R::kCounters];
  TableEntry table[R::kEntries];
  MappedMemory memories[R::kMemories];
  Domain domains[R::kDomains];
  u16 profiles[R::kOwners][kMaxProfiles];  ///< their VNIs
};

/// Numbers in use, in the order in which they came.
template <u32 kRoom>
struct Numbers {
  u16 at[kRoom] = {};
  u32 count = 0;
  DOORBELL_HD void add(u32 n) { at[count++] = static_cast<u16>(n); }
  DOORBELL_HD void remove(u32 n) {
    u32 kept = 0;
    for (u32 i = 0; i < count; ++i)
      if (at[i] != n) at[kept++] = at[i];
    count = kept;
  }
};

/// A set-up call: what an engine does between two rounds. The object of `kind` counts; `number` for the kinds
/// that remove one (of a queue, its index; of memory, its place).
struct Change {
  enum class Kind : u32 {
    none,
    add_queue,
    remove_queue,
    add_event_queue,
    remove_event_queue,
    move_event_queue,  ///< to the memory of `events`, behind an EQ_SWITCH event in the old one
    add_counter,
    remove_counter,
    move_writeback,  ///< to that of `counter`
    add_entry,
    remove_entry,
    name_entry,  ///< by the VNI, PID and index of `entry`, or not any more
    add_memory,
    remove_memory,
    add_domain,
    remove_domain,
    set_profile,
  };
  Kind kind = Kind::none;
  u32 number = 0;
  WorkQueue queue = {};
  EventProducer events = {};
  CountingEvent counter = {};
  TableEntry entry = {};
  MappedMemory memory = {};
  Domain domain = {};
  Profile profile = {};
};

}  // namespace doorbell::cxi
