// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Host memory that a software card's driver has given away as descriptors.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// A buffer as the driver sees it: its own open file and mapping of the same memory.
class HostBuffer {
 public:
  using Identity = std::pair<u64, u64>;  ///< device and inode number
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  [[nodiscard]] u8* data() const { return data_; }
  [[nodiscard]] u64 bytes() const { return bytes_; }

 private:
  friend class HostBuffers;
  HostBuffer() = default;
  Descriptor file_;
  u8* data_ = nullptr;
  u64 bytes_ = 0;
  std::shared_ptr<std::atomic<u64>> held_bytes_;
};

/// All of them. Any thread.
class HostBuffers {
 public:
  struct Limits {
    u32 buffers = 4096;
    u64 bytes = ~u64{0};  ///< together
  };
  explicit HostBuffers(const Limits& limits) : limits_(limits) {}

  /// A new one of `bytes`, and in `out` the descriptor for who asked. Returns 0 or an errno: EDQUOT over a
  /// limit, ENOMEM, EMFILE. Takes as long as the kernel needs to find the memory.
  [[nodiscard]] int create(u64 bytes, bool close_on_exec, Descriptor& out);
  /// The buffer behind a descriptor. Returns 0, EBADF for what is not open, EINVAL for what is none of ours.
  [[nodiscard]] int find(int fd, std::shared_ptr<HostBuffer>& out) const;
  /// Forgets the buffers of which no process has a descriptor or a mapping any more. Returns how many are
  /// left.
  u64 sweep();

 private:
  [[nodiscard]] int reserve(u64 bytes);
  const Limits limits_;
  std::shared_ptr<std::atomic<u64>> held_bytes_ = std::make_shared<std::atomic<u64>>(0);
  mutable std::mutex mutex_;
  u32 being_made_ = 0;
  u64 being_made_bytes_ = 0;  ///< which the kernel may not have found yet
  std::map<HostBuffer::Identity, std::shared_ptr<HostBuffer>> buffers_;
};

}  // namespace doorbell::qdma
