// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/memory_table.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::rdma {

MemoryTable::MemoryTable()
    : entries_(new MemoryEntry[MemoryKeys::kEntries]),
      generation_(new u8[MemoryKeys::kEntries]()),
      used_(new bool[MemoryKeys::kEntries]()) {}

u32 MemoryTable::add(Iova begin, u64 bytes, const model::DmaPlace& base, u32 access, bool on_gpu) {
  const std::scoped_lock lock(mutex_);
  // Round robin: an index is reused as late as possible, so its generation takes long to repeat.
  for (u32 tried = 0; tried < MemoryKeys::kEntries; ++tried) {
    const u32 index = next_;
    next_ = (next_ + 1) % MemoryKeys::kEntries;
    if (used_[index]) continue;
    used_[index] = true;
    MemoryEntry& e = entries_[index];
    const u32 key = (MemoryKeys::kFirstNumber + 2 * index) << 8 | generation_[index]++;
    e.rkey = key + 0x100;
    e.access = access;
    e.begin = begin;
    e.bytes = bytes;
    e.base = base;
    e.on_gpu = on_gpu;
    store_release(&e.lkey, key);
    try {
      show(index);
    } catch (...) {
      store_release(&e.lkey, 0);
      used_[index] = false;
      throw;
    }
    return index;
  }
  throw Error("registering memory with the model NIC",
              fmt::format("all {} keys are in use", MemoryKeys::kEntries));
}

void MemoryTable::invalidate(u32 index) {
  store_release(&entries_[index].lkey, 0);
  try {
    show(index);
  } catch (const std::exception&) {
    // A GPU that cannot be written: the caller finds that when it pauses the engines.
  }
}

/// Nobody has the entry's keys before it is added, and no engine reads it when it is free.
void MemoryTable::show(u32 index) {
  if (copy_ != nullptr) copy_->write(index * sizeof(MemoryEntry), &entries_[index], sizeof(MemoryEntry));
}

void MemoryTable::release(u32 index) {
  const std::scoped_lock lock(mutex_);
  used_[index] = false;
}

}  // namespace doorbell::rdma
