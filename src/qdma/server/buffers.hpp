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

#include "qdma/peer/wire.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// A buffer as the driver sees it: its own open file and mapping of the same memory.
class HostBuffer {
 public:
  using Identity = wire::HostBufferName;
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
    u64 bytes = ~u64{0};       ///< together
    u64 part = u64{64} << 20;  ///< of a buffer that is being made, a multiple of the page size
  };
  explicit HostBuffers(const Limits& limits) : limits_(limits) {}

  /// A buffer on its way. The kernel finds its memory part by part, so that between two of them others have
  /// their turn and who asked may be gone. Destroyed before it is finished, it gives everything back. One
  /// thread at a time.
  class Making;
  /// Begins one of `bytes`. Returns 0 or an errno: EDQUOT over a limit, ENOMEM.
  [[nodiscard]] int begin(u64 bytes, bool close_on_exec, std::shared_ptr<Making>& out);
  /// The buffer behind a descriptor. Returns 0, EBADF for what is not open, EINVAL for what is none of ours.
  [[nodiscard]] int find(int fd, std::shared_ptr<HostBuffer>& out) const;
  /// Whether some process has this one.
  [[nodiscard]] bool holds(const HostBuffer::Identity& buffer);
  /// Forgets the buffers of which no process has a descriptor or a mapping any more. Returns how many are
  /// left.
  u64 sweep();

 private:
  [[nodiscard]] int reserve(u64 bytes);
  /// The kernel has found so much of what is being made, or does not need to any more.
  void settle(u64 bytes);
  const Limits limits_;
  std::shared_ptr<std::atomic<u64>> held_bytes_ = std::make_shared<std::atomic<u64>>(0);
  mutable std::mutex mutex_;
  u32 being_made_ = 0;
  u64 being_made_bytes_ = 0;  ///< which the kernel may not have found yet
  std::map<HostBuffer::Identity, std::shared_ptr<HostBuffer>> buffers_;
};

class HostBuffers::Making {
 public:
  Making(HostBuffers& all, u64 bytes, bool close_on_exec);
  ~Making();
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  /// Makes the next part. EINPROGRESS: there is more to do; 0: `out` has the descriptor for who asked; or an
  /// errno: ENOMEM, EMFILE.
  [[nodiscard]] int go_on(Descriptor& out);

 private:
  [[nodiscard]] int open();
  [[nodiscard]] int find_memory(u64 bytes);
  HostBuffers& all_;
  const bool close_on_exec_;
  std::shared_ptr<HostBuffer> buffer_;
  Descriptor theirs_;
  u64 found_ = 0;  ///< bytes
};

}  // namespace doorbell::qdma
