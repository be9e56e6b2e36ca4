// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's table of registered memory: the bytes and access rights of each key.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/memory_order.hpp>

#include <memory>
#include <mutex>

#include "model/dma.hpp"

namespace doorbell::rdma {

/// Device threads look up keys without a lock. A key consists of an index and a generation byte that counts
/// the uses of the index, so a key of deregistered memory fails.
class MemoryTable {
 public:
  struct Entry {
    u32 lkey = 0;  ///< 0: free. Written last.
    u32 rkey = 0;
    u32 access = 0;
    u64 begin = 0;  ///< IOVA
    u64 bytes = 0;
    model::DmaPlace base{};
    [[nodiscard]] model::DmaPlace at(u64 address) const { return base + (address - begin); }
    [[nodiscard]] bool covers(u64 address, u64 n) const {
      return address >= begin && address - begin <= bytes && n <= bytes - (address - begin);
    }
  };

  MemoryTable();

  /// The entry's index. Throws Error when the table is full.
  [[nodiscard]] u32 add(Iova begin, u64 bytes, const model::DmaPlace& base, u32 access);
  /// Makes the entry's keys fail from now on. The caller waits for the device threads before release().
  void invalidate(u32 index);
  void release(u32 index);
  [[nodiscard]] const Entry& at(u32 index) const { return entries_[index]; }

  /// Null if no memory has this key now.
  [[nodiscard]] const Entry* local(u32 key) const { return find(key, 0); }
  [[nodiscard]] const Entry* remote(u32 key) const { return find(key, 1); }

 private:
  static constexpr u32 kEntries = 4096;
  // Low key numbers stay unused: a zeroed or reserved key (mlx5's 100h) must never find memory.
  static constexpr u32 kFirstNumber = 64;

  [[nodiscard]] const Entry* find(u32 key, u32 remote) const {
    const u32 number = (key >> 8) - kFirstNumber;
    if (number % 2 != remote || number / 2 >= kEntries) return nullptr;
    const Entry& e = entries_[number / 2];
    // The acquire orders the entry's other fields behind its key.
    const u32 lkey = load_acquire(&e.lkey);
    return lkey != 0 && (remote != 0 ? lkey + 0x100 : lkey) == key ? &e : nullptr;
  }

  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<u8[]> generation_;
  std::unique_ptr<bool[]> used_;
  u32 next_ = 0;
  std::mutex mutex_;
};

}  // namespace doorbell::rdma
