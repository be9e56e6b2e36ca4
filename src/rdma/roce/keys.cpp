// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/keys.hpp"

#include <cerrno>

namespace doorbell::roce {

namespace {

constexpr u32 kMostEntries = 1 << 24;
constexpr u32 kKnownAccess =
    kLocalWrite | kRemoteWrite | kRemoteRead | kRemoteAtomic | kBindWindow | kZeroBased;

/// The last byte has an address; so a range may end where addresses do.
bool wraps(u64 first, u64 bytes) {
  return bytes != 0 && first + (bytes - 1) < first;
}

bool allowed(u32 access) {
  return (access & ~kKnownAccess) == 0 &&
         ((access & (kRemoteWrite | kRemoteAtomic)) == 0 || (access & kLocalWrite) != 0);
}

}  // namespace

KeyTable::Entry* KeyTable::entry_of(u32 key) {
  const u32 index = key >> 8;
  if (index >= entries_.size() || entries_[index].kind == Kind::none || entries_[index].key != key)
    return nullptr;
  return &entries_[index];
}

KeyTable::Entry* KeyTable::fresh(Kind kind, u32 protection_domain) {
  u32 index = 0;
  if (resting_.size() > kResting || entries_.size() == kMostEntries) {
    if (resting_.empty()) return nullptr;
    index = resting_.front();
    resting_.pop_front();
  } else {
    index = static_cast<u32>(entries_.size());
    entries_.emplace_back();
  }
  Entry& entry = entries_[index];
  const u8 generation = static_cast<u8>(entry.generation + 1);
  entry = Entry{};
  entry.generation = generation;
  entry.key = index << 8 | generation;
  entry.kind = kind;
  entry.protection_domain = protection_domain;
  return &entry;
}

void KeyTable::give_back(Entry& entry) {
  // A window's user chose its last key; the next one of this index differs from that, too.
  entry.generation = static_cast<u8>(entry.key);
  entry.kind = Kind::none;
  entry.access = 0;
  entry.memory = nullptr;
  entry.bytes = 0;
  const u32 index = entry.key >> 8;
  entry.key = 0;
  resting_.push_back(index);
}

Errno KeyTable::add_region(u32 protection_domain, void* start, u64 bytes, u64 iova, u32 access,
                           RegisteredMemory& into) {
  if (!allowed(access) || wraps(reinterpret_cast<u64>(start), bytes) || wraps(iova, bytes)) return EINVAL;
  Entry* entry = fresh(Kind::region, protection_domain);
  if (entry == nullptr) return ENOMEM;
  entry->memory = static_cast<u8*>(start);
  entry->first = iova;
  entry->bytes = bytes;
  entry->access = access;
  into = {.local_key = entry->key, .remote_key = entry->key};
  return 0;
}

Errno KeyTable::remove_region(u32 key) {
  Entry* entry = entry_of(key);
  if (entry == nullptr || entry->kind != Kind::region) return EINVAL;
  if (entry->windows != 0) return EBUSY;
  give_back(*entry);
  return 0;
}

Errno KeyTable::change_region(u32 key, u32 bits, u32 protection_domain, void* start, u64 bytes, u64 iova,
                              u32 access, RegisteredMemory& into) {
  constexpr u32 kMemory = 1, kDomain = 2, kRights = 4;
  Entry* entry = entry_of(key);
  if (entry == nullptr || entry->kind != Kind::region || bits == 0 ||
      (bits & ~(kMemory | kDomain | kRights)) != 0)
    return EINVAL;
  if (entry->windows != 0) return EBUSY;
  if ((bits & kRights) != 0 && !allowed(access)) return EINVAL;
  if ((bits & kMemory) != 0) {
    if (wraps(reinterpret_cast<u64>(start), bytes) || wraps(iova, bytes)) return EINVAL;
    entry->memory = static_cast<u8*>(start);
    entry->first = iova;
    entry->bytes = bytes;
  }
  if ((bits & kDomain) != 0) entry->protection_domain = protection_domain;
  if ((bits & kRights) != 0) entry->access = access;
  into = {.local_key = entry->key, .remote_key = entry->key};
  return 0;
}

Errno KeyTable::add_window(u32 protection_domain, u8 type, u32& key) {
  if (type != 1 && type != 2) return EINVAL;
  Entry* entry = fresh(type == 1 ? Kind::window_1 : Kind::window_2, protection_domain);
  if (entry == nullptr) return ENOMEM;
  key = entry->key;
  return 0;
}

void KeyTable::unbind(Entry& window) {
  if (!window.bound) return;
  window.bound = false;
  --entries_[window.region].windows;
}

Errno KeyTable::remove_window(u32 key) {
  // The part of a key that a bind sets may not have reached the caller.
  const u32 index = key >> 8;
  if (index >= entries_.size()) return EINVAL;
  Entry& entry = entries_[index];
  if (entry.kind != Kind::window_1 && entry.kind != Kind::window_2) return EINVAL;
  unbind(entry);
  give_back(entry);
  return 0;
}

bool KeyTable::bind(u32 window, const SendRequest::Bind& bind, u32 protection_domain, u32 queue_pair) {
  Entry* entry = entry_of(window);
  if (entry == nullptr || entry->kind == Kind::region || entry->protection_domain != protection_domain)
    return false;
  if (bind.new_key >> 8 != window >> 8) return false;
  constexpr u32 kWindowAccess = kRemoteWrite | kRemoteRead | kRemoteAtomic | kZeroBased;
  // A window of type 2 that shows something is invalidated first.
  if (entry->kind == Kind::window_2 && entry->bound) return false;
  if (bind.length == 0) {
    if (entry->kind == Kind::window_2) return false;
    unbind(*entry);
    entry->key = bind.new_key;
    return true;
  }
  const Entry* region = entry_of(bind.region_key);
  if (region == nullptr || region->kind != Kind::region || region->protection_domain != protection_domain ||
      (region->access & kBindWindow) == 0 || (bind.access & ~kWindowAccess) != 0)
    return false;
  if ((bind.access & (kRemoteWrite | kRemoteAtomic)) != 0 && (region->access & kLocalWrite) == 0)
    return false;
  if (entry->kind == Kind::window_1 && (bind.access & kZeroBased) != 0) return false;
  const u64 offset = bind.address - region->first;
  if (offset > region->bytes || bind.length > region->bytes - offset) return false;
  unbind(*entry);
  entry->memory = region->memory + offset;
  entry->first = (bind.access & kZeroBased) != 0 ? 0 : bind.address;
  entry->bytes = bind.length;
  entry->access = bind.access;
  entry->key = bind.new_key;
  entry->owner = queue_pair;
  entry->region = bind.region_key >> 8;
  entry->bound = true;
  ++entries_[entry->region].windows;
  return true;
}

bool KeyTable::invalidate(u32 key, u32 protection_domain, u32 queue_pair) {
  Entry* entry = entry_of(key);
  if (entry == nullptr || entry->kind != Kind::window_2 || !entry->bound || entry->owner != queue_pair ||
      entry->protection_domain != protection_domain)
    return false;
  unbind(*entry);
  return true;
}

}  // namespace doorbell::roce
