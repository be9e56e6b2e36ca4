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

/// Copies are complete after settle(); small ones within host memory at once. The last byte of a copy within
/// host memory comes last, and in the order of the copies: an initiator that polls on the data looks at that
/// byte, and reads the others after it. One for each device thread.
class Copier {
 public:
  /// After so many bytes of shared copies a device shows what it has done: initiators and checkers then work
  /// on that while the device copies more.
  static constexpr u64 kRoundBytes = 256 * 1024;

  /// `threads` share the larger copies within host memory.
  explicit Copier(DmaEngine& dma, u32 threads = 1) : dma_(dma), crew_(threads) {}

  /// False: the DMA engine cannot do this copy.
  [[nodiscard]] bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    if (to.gpu || from.gpu) return copy_gpu(to, from, bytes);
    if (bytes >= CopyCrew::kWorthSharing && !crew_.empty() && worth_sharing(bytes))
      return share(to, from, bytes);
    return copy_alone(to, from, bytes);
  }
  /// The same by this thread, at once, if both are in host memory.
  [[nodiscard]] bool copy_alone(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    if (to.gpu || from.gpu) return copy_gpu(to, from, bytes);
    // This thread's copy must not overtake copies that others still have to do.
    crew_.settle();
    if (!open_.empty() && !order(to, from, bytes)) return false;
    copy_here(to.address, from.address, bytes);
    return true;
  }
  /// True if copies are not complete.
  [[nodiscard]] bool pending() const { return crew_.pending() || dma_.pending(); }
  /// Bytes of shared copies since the last settle().
  [[nodiscard]] u64 shared_bytes() const { return crew_.bytes(); }
  /// Finishes the shared copies.
  void settle_shared() { crew_.settle(); }
  /// Finishes the copies that were begun. False if the GPU did not answer.
  [[nodiscard]] bool settle() {
    crew_.settle();
    open_.clear();
    large_bytes_ = 0;
    return !dma_.pending() || dma_.commit();
  }

 private:
  /// Where helpers sleep, a single copy is over sooner than they are awake.
  [[nodiscard]] bool worth_sharing(u64 bytes) {
    if (!crew_.asleep()) return true;
    large_bytes_ += bytes;
    return large_bytes_ >= CopyCrew::kWorthWaking;
  }
  static void copy_here(u8* to, const u8* from, u64 bytes) {
    if (bytes == 0) return;
    const u8 last = from[bytes - 1];
    std::memmove(to, from, bytes - 1);
    __atomic_store_n(to + bytes - 1, last, __ATOMIC_RELEASE);
  }

  [[nodiscard]] bool share(const DmaPlace& to, const DmaPlace& from, u64 bytes);
  [[nodiscard]] bool is_open(const DmaPlace& to, const DmaPlace& from, u64 bytes) const;
  [[nodiscard]] bool fits(const CopyJob& copy) const;
  [[nodiscard]] bool order(const DmaPlace& to, const DmaPlace& from, u64 bytes);
  [[nodiscard]] bool copy_gpu(const DmaPlace& to, const DmaPlace& from, u64 bytes);

  DmaEngine& dma_;
  CopyCrew crew_;
  std::vector<CopyJob> open_;  // not complete
  u64 large_bytes_ = 0;        // of copies since the last settle() that could have been shared
};

}  // namespace doorbell::model
