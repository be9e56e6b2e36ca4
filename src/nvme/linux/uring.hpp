// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The engines behind KernelQueuePair: an io_uring, and plain pread and pwrite.
#pragma once

#include <liburing.h>

#include <span>
#include <vector>

#include "nvme/bench.hpp"
#include "nvme/linux/queue_pair.hpp"

namespace doorbell::nvme {

/// Thread rule: one thread at a time, not always the same.
class UringEngine {
 public:
  /// A ring for `entries` operations on `fd`, whose data all lies in `buffer`.
  UringEngine(int fd, u32 entries, std::span<u8> buffer, const FileOptions& options);
  ~UringEngine();
  UringEngine(const UringEngine&) = delete;
  UringEngine& operator=(const UringEngine&) = delete;

  void put(const FileIo& io);
  u32 submit(bool wait_follows);
  /// Waits some milliseconds at most, or not at all.
  bool take(FileIoDone* done, bool wait);

 private:
  void arm();
  void hand_over();

  io_uring ring_{};
  int fd_;
  FileOptions options_;
  bool armed_ = false;     ///< a timeout is in the ring, which ends every wait
  bool deferred_ = false;  ///< the next take() submits
  bool pending_ = false;   ///< the kernel has not taken all that is in the ring
};

class SyncEngine {
 public:
  explicit SyncEngine(int fd) : fd_(fd) {}
  void put(const FileIo& io) { todo_.push_back(io); }
  u32 submit(bool wait_follows);
  bool take(FileIoDone* done, bool wait);

 private:
  int fd_;
  std::vector<FileIo> todo_;
  std::vector<FileIoDone> done_;
};

}  // namespace doorbell::nvme
