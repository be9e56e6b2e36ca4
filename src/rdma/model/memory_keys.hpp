// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a NIC's engine finds registered memory by its key.
#pragma once

#include <doorbell/memory_order.hpp>

#include "model/dma_place.hpp"

namespace doorbell::rdma {

/// The bytes and rights of one registration.
struct MemoryEntry {
  u32 lkey = 0;  ///< 0: free. Written last.
  u32 rkey = 0;
  u32 access = 0;
  u64 begin = 0;  ///< IOVA
  u64 bytes = 0;
  model::DmaPlace base{};
  bool on_gpu = false;  ///< in the memory of a GPU, where a kernel is the NIC: nothing else looks at it
  [[nodiscard]] DOORBELL_INLINE model::DmaPlace at(u64 address) const { return base + (address - begin); }
  [[nodiscard]] DOORBELL_INLINE bool covers(u64 address, u64 n) const {
    return address >= begin && address - begin <= bytes && n <= bytes - (address - begin);
  }
  /// True if someone with these rights (access flags, all of which must be there) may reach the bytes.
  [[nodiscard]] DOORBELL_INLINE bool lets(u64 address, u64 n, u32 rights) const {
    return covers(address, n) && (access & rights) == rights;
  }
};

/// Device threads look up keys without a lock. A key consists of an index and a generation byte that counts
/// the uses of the index, so a key of deregistered memory fails.
struct MemoryKeys {
  static constexpr u32 kEntries = 4096;
  // Low key numbers stay unused: a zeroed or reserved key (mlx5's 100h) must never find memory.
  static constexpr u32 kFirstNumber = 64;

  const MemoryEntry* entries = nullptr;  ///< kEntries, where the engine reaches them

  /// The entry that a key names, as it was when the caller last took a doorbell: which brought all keys that
  /// a request can have. In a kernel, where a key ends only in a pause; loads of several keys go out
  /// together. Not its own key if no memory has it.
  [[nodiscard]] DOORBELL_INLINE MemoryEntry seen(u32 key) const {
    const u32 number = (key >> 8) - kFirstNumber;
    return entries[number / 2 < kEntries ? number / 2 : 0];
  }

  /// Null if no memory has this key now.
  [[nodiscard]] DOORBELL_INLINE const MemoryEntry* local(u32 key) const { return find(key, 0); }
  [[nodiscard]] DOORBELL_INLINE const MemoryEntry* remote(u32 key) const { return find(key, 1); }

 private:
  [[nodiscard]] DOORBELL_INLINE const MemoryEntry* find(u32 key, u32 remote) const {
    const u32 number = (key >> 8) - kFirstNumber;
    if (number % 2 != remote || number / 2 >= kEntries) return nullptr;
    const MemoryEntry& e = entries[number / 2];
    // The acquire orders the entry's other fields behind its key.
    const u32 lkey = load_acquire(&e.lkey);
    return lkey != 0 && (remote != 0 ? lkey + 0x100 : lkey) == key ? &e : nullptr;
  }
};

}  // namespace doorbell::rdma
