// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a model controller stores its blocks in.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "nvme/model/config.hpp"
#include "system/descriptor.hpp"

namespace doorbell::nvme {

/// `null` has no bytes; `ram` is memory that starts as zeros; `file` is mapped, so that its blocks are still
/// there when the file is opened again. Reading leaves a file as it is: it is made, grown and given space on
/// its disk by the first write to each part. A file that holds something else than blocks that doorbell wrote
/// is foreign: it is never grown, and writing to it takes permission.
class Media {
 public:
  explicit Media(const ModelConfig& config);
  ~Media();
  Media(const Media&) = delete;
  Media& operator=(const Media&) = delete;

  /// Null when nothing is stored. What lies beyond the end of a file reads as zeros; bytes may be stored to
  /// only after reserve().
  [[nodiscard]] u8* bytes() const { return base_; }
  [[nodiscard]] u64 capacity() const { return capacity_; }
  /// Looks at all data of the file: set-up only.
  [[nodiscard]] bool foreign() const;

  /// Makes `bytes` at `offset` safe to store to: a mapped page without space on the disk behind it ends the
  /// process when it is written. False when the disk is full or the file may not grow. Any thread; it locks
  /// only the first time that a part of the file is written to.
  [[nodiscard]] bool reserve(u64 offset, u64 bytes) {
    if (!file_) return true;
    for (u64 part = offset / part_bytes_; part <= (offset + bytes - 1) / part_bytes_; ++part)
      if ((reserved_[part / 64].load(std::memory_order_acquire) >> (part % 64) & 1) == 0)
        return reserve_slowly(offset, bytes);
    return true;
  }
  /// Why the last reserve() said no; empty when none did. Any thread.
  [[nodiscard]] std::string refusal() const;

  /// Makes earlier writes survive a power loss. False when the file system refuses.
  [[nodiscard]] bool flush();

 private:
  bool reserve_slowly(u64 offset, u64 bytes);
  bool make_space(u64 offset, u64 bytes);
  bool grow();
  void map_file(u64 bytes);

  u8* base_ = nullptr;
  u64 capacity_ = 0;
  bool file_ = false;
  std::string path_;
  mutable std::mutex mutex_;  ///< guards what follows but for the bits, which are only set under it
  Descriptor fd_;             ///< closed while the file does not exist
  u64 mapped_ = 0;            ///< bytes from 0 that lie in the file; the rest is anonymous and read only
  std::string refusal_;
  u64 part_bytes_ = 0;                      ///< a file is given space in such parts
  std::vector<std::atomic<u64>> reserved_;  ///< a bit a part
};

}  // namespace doorbell::nvme
