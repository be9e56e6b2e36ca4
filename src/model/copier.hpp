// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Copies between places that a device has looked up. The result is as if each copy ended before the next
// begins.
#pragma once

#include <cstring>
#include <vector>

#include "model/copy_crew.hpp"
#include "model/copy_job.hpp"
#include "model/dma.hpp"

namespace doorbell::model {

/// Copies within host memory are done at once; others are complete after settle(). One for each device
/// thread.
class Copier {
 public:
  /// `threads` share each large copy within host memory.
  explicit Copier(DmaEngine& dma, u32 threads = 1) : dma_(dma), crew_(threads) {}

  /// False: the DMA engine cannot do this copy.
  [[nodiscard]] bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    if (!to.gpu && !from.gpu) [[likely]] {
      if (!open_.empty() && !order(to, from, bytes)) return false;
      copy_here(to.address, from.address, bytes);
      return true;
    }
    return copy_gpu(to, from, bytes);
  }
  /// Finishes the copies that were begun. False if the GPU did not answer.
  [[nodiscard]] bool settle() {
    open_.clear();
    return !dma_.pending() || dma_.commit();
  }

 private:
  /// Copies the last byte last: an initiator that polls on the data looks at that byte, and reads the others
  /// after it.
  void copy_here(u8* to, const u8* from, u64 bytes) {
    if (bytes == 0) return;
    const u8 last = from[bytes - 1];
    const bool apart = to + bytes <= from || from + bytes <= to;
    if (bytes >= kSharedCopy && apart && !crew_.empty()) crew_.copy(to, from, bytes - 1);
    else std::memmove(to, from, bytes - 1);
    __atomic_store_n(to + bytes - 1, last, __ATOMIC_RELEASE);
  }

  [[nodiscard]] bool is_open(const DmaPlace& to, const DmaPlace& from, u64 bytes) const;
  [[nodiscard]] bool order(const DmaPlace& to, const DmaPlace& from, u64 bytes);
  [[nodiscard]] bool copy_gpu(const DmaPlace& to, const DmaPlace& from, u64 bytes);

  DmaEngine& dma_;
  CopyCrew crew_;
  std::vector<CopyJob> open_;  // the copies of the next commit
};

}  // namespace doorbell::model
