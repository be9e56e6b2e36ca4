// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory that requests may name: regions and windows, by key. Used by whoever has the engine.
#pragma once

#include <doorbell/config.hpp>

#include <deque>
#include <vector>

#include "rdma/roce/nic.hpp"

namespace doorbell::roce {

/// A key is 24 bits of index and 8 bits that change with each use of the index (of a window: with each bind,
/// as its user says). An index rests until kResting others have been given back after it: a stale key
/// passes after 256 * kResting registrations at the earliest.
class KeyTable {
 public:
  static constexpr std::size_t kResting = 4096;

  /// The bytes that `key` has at [address, address + bytes) for an access with all of `rights` in the
  /// protection domain; nullptr if it has not. `queue_pair`: whose request it is, for windows of type 2. No
  /// bytes at all need no key, so callers ask only for some.
  [[nodiscard]] u8* find(u32 key, u32 protection_domain, u32 queue_pair, u64 address, u64 bytes,
                         u32 rights) const {
    const u32 index = key >> 8;
    if (index >= entries_.size()) return nullptr;
    const Entry& entry = entries_[index];
    if (entry.key != key || entry.protection_domain != protection_domain || (entry.access & rights) != rights)
      return nullptr;
    if (entry.kind != Kind::region &&
        (!entry.bound || (entry.kind == Kind::window_2 && entry.owner != queue_pair)))
      return nullptr;
    const u64 offset = address - entry.first;
    if (offset > entry.bytes || bytes > entry.bytes - offset) return nullptr;
    return entry.memory + offset;
  }
  /// The same for memory of this side, named by an SGE: windows are for others.
  [[nodiscard]] u8* find_local(const Sge& sge, u32 protection_domain, u64 offset, u64 bytes,
                               u32 rights) const {
    const u32 index = sge.key >> 8;
    if (index >= entries_.size() || entries_[index].kind != Kind::region) return nullptr;
    return find(sge.key, protection_domain, 0, sge.address + offset, bytes, rights);
  }

  Errno add_region(u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                   RegisteredMemory& into);
  Errno remove_region(u32 key);
  /// `bits` as ibv_rereg_mr_flags: 1 the memory, 2 the domain, 4 the rights. The keys stay.
  Errno change_region(u32 key, u32 bits, u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                      RegisteredMemory& into);
  Errno add_window(u32 protection_domain, u8 type, u32& key);
  Errno remove_window(u32 key);
  /// A bind request of a queue pair; false if it is not allowed.
  bool bind(u32 window, const SendRequest::Bind& bind, u32 protection_domain, u32 queue_pair);
  /// Ends what a window of type 2 shows to `queue_pair`; false if it is none of its.
  bool invalidate(u32 key, u32 protection_domain, u32 queue_pair);

 private:
  enum class Kind : u8 { none, region, window_1, window_2 };
  struct Entry {
    u8* memory = nullptr;  ///< where address `first` is
    u64 first = 0;
    u64 bytes = 0;
    u32 key = 0;
    u32 protection_domain = 0;
    u32 access = 0;
    Kind kind = Kind::none;
    bool bound = false;
    u8 generation = 0;
    u32 owner = 0;    ///< window of type 2: the queue pair that bound it
    u32 region = 0;   ///< window: index of its region
    u32 windows = 0;  ///< region: how many are bound to it
  };

  [[nodiscard]] Entry* entry_of(u32 key);
  Entry* fresh(Kind kind, u32 protection_domain);
  void give_back(Entry& entry);
  void unbind(Entry& window);

  std::vector<Entry> entries_{1};  ///< 0 is never given: no key is 0 to 255
  std::deque<u32> resting_;
};

}  // namespace doorbell::roce
