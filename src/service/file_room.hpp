// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whether a message's files find a place in this process.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::service {

/// Free descriptors of this process. Files that come with a message and find none are closed by the kernel
/// inside recvmsg(), and closing may last as long as their sender likes. One thread.
class FileRoom {
 public:
  /// Whether `files` more find a place, with some to spare for other threads.
  [[nodiscard]] bool has(u32 files);
  /// So many have been opened by who asks.
  void used(u64 files) { left_ -= files < left_ ? files : left_; }

 private:
  u64 left_ = 0;   // to be used before it is counted again
  u32 asked_ = 1;  // as often may still be asked before that
};

}  // namespace doorbell::service
