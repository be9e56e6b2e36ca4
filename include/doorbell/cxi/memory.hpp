// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where Cassini's queues lie, in addresses that the initiator can use. Plain data, which is passed to
// kernels.
#pragma once

#include <doorbell/memory_order.hpp>

namespace doorbell::cxi {

inline constexpr u32 kSlotBytes = 64;
inline constexpr u32 kSlotParts = 4;    ///< Word16 in a slot
inline constexpr u32 kStatusSlots = 4;  ///< slots 0..3 belong to the device

/// A command queue: a ring of 64-byte slots, and the launch page (4096 bytes) that starts it.
struct CommandQueueMemory {
  Word16* ring = nullptr;
  u8* launch = nullptr;  ///< write pointer at 0, low-latency windows at 1024, 2048 and 3072
  u32 slots = 0;         ///< of the whole ring, including the status slots; 64..65536
  u32 index = 0;
  bool triggered = false;  ///< takes only 64 and 128 byte counter commands
};

/// An event queue: `bytes` bytes; the first 64 are the device's status.
struct EventQueueMemory {
  u8* events = nullptr;
  u64* csr = nullptr;  ///< the register that takes the read pointer
  u32 bytes = 0;
  u32 index = 0;  ///< 0: no event queue
};

/// A counting event: its doorbell page, and the 8 bytes that the device writes back (null without a
/// write-back).
struct CounterMemory {
  u64* doorbell = nullptr;
  const u64* writeback = nullptr;
  u32 index = 0;  ///< 0: no counter
};

}  // namespace doorbell::cxi
