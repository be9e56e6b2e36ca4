// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/memory_table.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::rdma {

MemoryTable::MemoryTable()
    : entries_(new Entry[kEntries]), generation_(new u8[kEntries]()), used_(new bool[kEntries]()) {}

u32 MemoryTable::add(Iova begin, u64 bytes, const model::DmaPlace& base, u32 access) {
  const std::scoped_lock lock(mutex_);
  // Round robin: an index is reused as late as possible, so its generation takes long to repeat.
  for (u32 tried = 0; tried < kEntries; ++tried) {
    const u32 index = next_;
    next_ = (next_ + 1) % kEntries;
    if (used_[index]) continue;
    used_[index] = true;
    Entry& e = entries_[index];
    const u32 key = (kFirstNumber + 2 * index) << 8 | generation_[index]++;
    e.rkey = key + 0x100;
    e.access = access;
    e.begin = begin;
    e.bytes = bytes;
    e.base = base;
    store_release(&e.lkey, key);
    return index;
  }
  throw Error("registering memory with the model NIC", fmt::format("all {} keys are in use", kEntries));
}

void MemoryTable::invalidate(u32 index) {
  store_release(&entries_[index].lkey, 0);
}

void MemoryTable::release(u32 index) {
  const std::scoped_lock lock(mutex_);
  used_[index] = false;
}

}  // namespace doorbell::rdma
