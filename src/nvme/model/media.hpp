// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a model controller stores its blocks in.
#pragma once

#include "nvme/model/config.hpp"

namespace doorbell::nvme {

/// `null` has no bytes; `ram` is memory that starts as zeros; `file` is mapped, so that its blocks
/// are still there when the file is opened again. A file that holds something else than blocks that
/// doorbell wrote is foreign: it is never grown, and writing to it takes permission.
class Media {
 public:
  explicit Media(const ModelConfig& config);
  ~Media();
  Media(const Media&) = delete;
  Media& operator=(const Media&) = delete;

  /// Null when nothing is stored.
  [[nodiscard]] u8* bytes() const { return base_; }
  [[nodiscard]] u64 capacity() const { return capacity_; }
  [[nodiscard]] bool foreign() const { return foreign_; }
  /// Makes earlier writes survive a power loss. False when the file system refuses.
  [[nodiscard]] bool flush();

 private:
  u8* base_ = nullptr;
  u64 capacity_ = 0;
  bool file_ = false;
  bool foreign_ = false;
};

}  // namespace doorbell::nvme
