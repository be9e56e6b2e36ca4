// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where a model controller stores its blocks.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nvme/model/config.hpp"
#include "system/descriptor.hpp"
#include "system/file_lock.hpp"
#include "system/mapping_guard.hpp"

namespace doorbell::nvme {

/// `null` stores nothing. `ram` is memory that starts as zeros. `file` is mapped, so that its blocks are
/// still there when the file is opened again. Reading does not change a file: the first write to each part
/// creates, extends and allocates the file. A file with anything except blocks that doorbell wrote is
/// foreign: it is never extended, and writing to it needs permission. A file that another program cuts short
/// meanwhile has lost its data: nothing is read or written from then on. An open file is locked: a run that
/// writes has it alone.
class Media {
 public:
  explicit Media(const ModelConfig& config);
  ~Media();
  Media(const Media&) = delete;
  Media& operator=(const Media&) = delete;

  /// Null if nothing is stored. Bytes beyond the end of a file read as zeros; stores need reserve() first.
  [[nodiscard]] u8* bytes() const { return base_; }
  [[nodiscard]] u64 capacity() const { return capacity_; }
  /// True for a file that may not be written, too. Reads all data of the file, so call this in set-up only.
  [[nodiscard]] bool foreign() const;

  /// True if loads of `bytes` at `offset` are safe: a file system may need space even to load from a page of
  /// a mapped file that has none. Any thread.
  [[nodiscard]] bool loadable(u64 offset, u64 bytes) const {
    return !file_ || (has_space(offset, bytes) && !lost());
  }
  /// Reads what is not loadable. False if the file cannot be read. Any thread; it locks.
  [[nodiscard]] bool read(u64 offset, void* to, u64 bytes) const;

  /// Makes stores to `bytes` at `offset` safe: a store to a mapped page that has no space on the disk would
  /// end the process. False if the disk is full or the file may not grow. Any thread may call it; it locks
  /// only at the first write to a part of the file.
  [[nodiscard]] bool reserve(u64 offset, u64 bytes) {
    return !file_ || (!read_only_ && !lost() && (has_space(offset, bytes) || reserve_slowly(offset, bytes)));
  }
  /// True once a load or store has found no file behind its page: what it got or left is not on the media.
  [[nodiscard]] bool lost() const { return guard_ && guard_->lost(); }
  /// The reason why the last reserve() failed; empty if none failed. Any thread.
  [[nodiscard]] std::string refusal() const;

  /// Makes earlier writes survive a power loss. False if the file system refuses.
  [[nodiscard]] bool flush();
  /// The same of `bytes` at `offset`.
  [[nodiscard]] bool flush(u64 offset, u64 bytes);

  /// Gives up what is kept of `bytes` at `offset`, which read as zeros then. A file gives back whole parts
  /// and keeps space that it has of others. False: it may not be written. Any thread.
  [[nodiscard]] bool deallocate(u64 offset, u64 bytes);

 private:
  [[nodiscard]] bool has_space(u64 offset, u64 bytes) const {
    for (u64 part = offset / part_bytes_; part <= (offset + bytes - 1) / part_bytes_; ++part)
      if ((reserved_[part / 64].load(std::memory_order_acquire) >> (part % 64) & 1) == 0) return false;
    return true;
  }
  void note_space();
  void set_unreserved(u64 part) {
    reserved_[part / 64].fetch_and(~(u64{1} << (part % 64)), std::memory_order_release);
  }
  void set_reserved(u64 part) {
    reserved_[part / 64].fetch_or(u64{1} << (part % 64), std::memory_order_release);
  }
  bool reserve_slowly(u64 offset, u64 bytes);
  bool make_space(u64 offset, u64 bytes);
  bool grow();
  [[nodiscard]] bool exists() const;
  bool punch(u64 offset, u64 bytes);
  void map_file(u64 bytes);

  u8* base_ = nullptr;
  u64 capacity_ = 0;
  bool file_ = false;
  bool read_only_ = false;  ///< its parts that have no space never get some, so it is never stored to
  bool writes_ = true;
  std::optional<MappingGuard> guard_;
  std::string path_;
  mutable std::mutex
      mutex_;       ///< guards the members below; bits of reserved_ are set under it and read without it
  Descriptor fd_;   ///< closed as long as the file does not exist
  FileLock lock_;   ///< of the descriptor
  u64 mapped_ = 0;  ///< bytes from 0 that the file covers; the rest is anonymous, read only
  std::string refusal_;
  bool locked_out_ = false;                 ///< another run has made the file meanwhile
  u64 part_bytes_ = 0;                      ///< a file gets disk space in parts of this size
  std::vector<std::atomic<u64>> reserved_;  ///< a bit for each part
};

}  // namespace doorbell::nvme
