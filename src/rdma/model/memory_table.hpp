// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC's table of registered memory: the bytes and access rights of each key.
#pragma once

#include <doorbell/address_space.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <mutex>

#include "rdma/model/memory_keys.hpp"

namespace doorbell::rdma {

class MemoryTable {
 public:
  MemoryTable();

  /// For engines in a kernel: from now on `copy`, of kBytes, holds the same entries. Throws Error.
  static constexpr u64 kBytes = MemoryKeys::kEntries * sizeof(MemoryEntry);
  void mirror(Region* copy) { copy_ = copy; }

  /// The entry's index. Throws Error when the table is full.
  [[nodiscard]] u32 add(Iova begin, u64 bytes, const model::DmaPlace& base, u32 access, bool on_gpu = false);
  /// Makes the entry's keys fail from now on. The caller waits for the engines before release().
  void invalidate(u32 index);
  void release(u32 index);
  [[nodiscard]] const MemoryEntry& at(u32 index) const { return entries_[index]; }
  [[nodiscard]] MemoryKeys keys() const { return {entries_.get()}; }

 private:
  void show(u32 index);

  std::unique_ptr<MemoryEntry[]> entries_;
  std::unique_ptr<u8[]> generation_;
  std::unique_ptr<bool[]> used_;
  u32 next_ = 0;
  std::mutex mutex_;
  Region* copy_ = nullptr;
};

}  // namespace doorbell::rdma
