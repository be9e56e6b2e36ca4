// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The state that a QueueServer works on, and how its host talks to it. Plain data, the same for a kernel and
// for a CPU thread that runs its code.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/nvme/wire.hpp>

#include "model/fault_draw.hpp"
#include "model/link.hpp"
#include "nvme/model/cids.hpp"
#include "nvme/model/commands.hpp"
#include "nvme/model/io_totals.hpp"

namespace doorbell::nvme {

inline constexpr u32 kServedQueues = 64;    ///< of each kind, at most, for one server
inline constexpr u32 kServedBurst = 64;     ///< commands that a server takes from a queue in one round
inline constexpr u32 kNearRanges = 1024;    ///< ranges that a server keeps in its own memory
inline constexpr u32 kServerThreads = 256;  ///< of a block, at most

/// IOVAs that the device may use, at an address that the server can use.
struct ServedRange {
  Iova begin;
  Iova end;
  u8* base;
  Access access;
};

/// A completion that is reported at a later time.
struct LateCompletion {
  u64 due_ns;
  Cqe cqe;  ///< without its phase tag; its sq_head is that of the time when it is reported
  u32 sq;   ///< the slot of its submission queue
};

/// A slot with no entries serves no queue. Lane 0 alone calls what changes a queue.
struct ServedCq : CqRing {
  LateCompletion* late;  ///< room for `late_room`; null where all completions are reported at once
  u32 late_room;
  u32 late_count;

  /// Forgets the late completion at `at`. The others stay in their order.
  DOORBELL_INLINE void erase_late(u32 at) {
    for (u32 i = at + 1; i < late_count; ++i) late[i - 1] = late[i];
    --late_count;
  }
  template <class Which>
  DOORBELL_INLINE void erase_late_if(Which which) {
    for (u32 i = late_count; i > 0; --i)
      if (which(late[i - 1])) erase_late(i - 1);
  }
};

struct ServedSq : SqRing {
  const Word16* ring;
  const u32* tail_word;
  u64* outstanding;  ///< a bit for each cid; null where all completions are reported at once
  u32 cq;            ///< its completion queue's slot
  u32 stalled;       ///< 1: commands wait for room in the completion queue
};

struct ServerOrder {
  enum class Kind : u32 {
    ranges,
    add_cq,
    add_sq,
    delete_sq,
    delete_cq,
    move_sq_doorbell,  ///< to `doorbell`, which is no register of the BAR
    move_cq_doorbell,
    abort,
    drop_all,
    save,
    end
  };
  Kind kind = Kind::end;
  u32 slot = 0;  ///< of the queue
  u16 cid = 0;   ///< for abort
  u32 range_count = 0;
  const ServedRange* ranges = nullptr;
  const u32* doorbell = nullptr;
  ServedCq cq = {};
  ServedSq sq = {};
};

/// In memory that host and server both reach. The server writes it; `sequence` last.
struct alignas(64) ServerAnswer {
  u32 sequence;       ///< of the last order carried out
  u32 result;         ///< of abort: 1 if the command was outstanding
  u32 bad_doorbells;  ///< values outside what a queue allows, so far
  u32 removed;        ///< 1: this server carried out Fault::removal
};

/// The counts of one server up to its last order to save them.
struct alignas(64) ServerCounts {
  IoTotals io;
  u64 injected[model::kFaultKinds];
};

/// The job that all servers of a device are given when they start. All pointers are addresses that servers
/// can use.
struct ServerJob {
  u32 tracks;  ///< commands may complete later, so cids are tracked
  NamespaceShape shape;
  u8* media;  ///< null: nothing is stored
  model::FaultDraw faults;
  u32 faulty;
  model::LinkRule link;
  u64* link_free_at;
  u32* gone;             ///< 1: the device has gone, no server does anything more
  const u32* sequences;  ///< of the newest order, for each server
  const ServerOrder* orders;
  ServerAnswer* answers;
  ServerCounts* counts;
};

}  // namespace doorbell::nvme
