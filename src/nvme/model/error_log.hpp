// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The newest errors of a controller, as its Error Information log reports them.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <array>
#include <cstring>
#include <mutex>

namespace doorbell::nvme {

/// Any thread may add; commands that succeed never touch it.
class ErrorLog {
 public:
  static constexpr u32 kEntries = 64;  ///< ELPE + 1
  static constexpr u32 kEntryBytes = 64;
  static constexpr u16 kNoCommand = 0xffff;  ///< as queue and cid of an error that is of no command

  /// `e`: null where the error is of no command. `st`: a status type and code.
  void add(u16 sqid, const Sqe* e, u16 st, u64 lba = 0) {
    const std::scoped_lock lock(mutex_);
    Entry& entry = ring_[count_++ % kEntries];
    entry = {};
    entry.count = count_;
    entry.sqid = e == nullptr ? kNoCommand : sqid;
    entry.cid = e == nullptr ? kNoCommand : e->cid;
    entry.status = e == nullptr ? u16{0} : static_cast<u16>((st | kDoNotRetry) << 1);
    entry.location = kNoLocation;
    entry.lba = lba;
    entry.nsid = e == nullptr ? 0 : e->nsid;
    if (st >> 8 == 2) ++media_;
  }
  /// The entries, the newest first, into a page of kEntries * kEntryBytes zeros.
  void write_to(u8* page) const {
    const std::scoped_lock lock(mutex_);
    for (u64 i = 0; i < kEntries && i < count_; ++i)
      std::memcpy(page + i * kEntryBytes, &ring_[(count_ - 1 - i) % kEntries], kEntryBytes);
  }
  [[nodiscard]] u64 count() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  /// Errors of the media among them.
  [[nodiscard]] u64 media() const {
    const std::scoped_lock lock(mutex_);
    return media_;
  }

 private:
  static constexpr u16 kNoLocation = 0xffff;  // no byte of the command alone is at fault
  struct Entry {
    u64 count;
    u16 sqid;
    u16 cid;
    u16 status;  // as in a completion entry, without a phase
    u16 location;
    u64 lba;
    u32 nsid;
    u8 vendor;
    u8 transport;
    u8 reserved[2];
    u64 specific;
    u16 transport_specific;
    u8 rest[22];
  };
  static_assert(sizeof(Entry) == kEntryBytes);

  mutable std::mutex mutex_;
  std::array<Entry, kEntries> ring_{};
  u64 count_ = 0;
  u64 media_ = 0;
};

}  // namespace doorbell::nvme
