// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How an engine on a thread of the CPU moves bytes: host memory itself, GPU memory through its DMA engine.
#pragma once

#include <mutex>
#include <vector>

#include "model/copier.hpp"
#include "model/deliberate_race.hpp"

namespace doorbell::model {

/// One for each engine; its functions are those of KernelMover. Copies are complete after settle(), small
/// ones in host memory at once.
class HostMover {
 public:
  /// `atomics` is shared by all engines of the device; `copy_threads` share a large copy of this one.
  HostMover(DmaEngine& dma, std::mutex& atomics, u32 copy_threads)
      : copier_(dma, copy_threads), atomics_(atomics) {}

  [[nodiscard]] bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    return alone_ ? copier_.copy_alone(to, from, bytes) : copier_.copy(to, from, bytes);
  }
  [[nodiscard]] bool copy_damaged(const DmaPlace& to, const DmaPlace& from, u64 bytes, u64 at);
  template <class Copy>
  [[nodiscard]] bool misplaced(Copy&& copy) {
    // ThreadSanitizer is told of this thread only.
    const DeliberateRace race;
    alone_ = true;
    const bool done = copy();
    alone_ = false;
    return done;
  }
  [[nodiscard]] bool atomic(const DmaPlace& at, bool adds, u64 operand, u64 compare, u64& old);
  [[nodiscard]] bool pending() const { return copier_.pending(); }
  /// True when the round is to end, so that the initiators see what is complete.
  [[nodiscard]] bool full() const { return copier_.shared_bytes() >= Copier::kRoundBytes; }
  [[nodiscard]] bool settle() { return copier_.settle(); }
  void settle_shared() { copier_.settle_shared(); }

 private:
  std::vector<u8> scratch_;
  Copier copier_;  // what it has begun may read `scratch_`
  std::mutex& atomics_;
  bool alone_ = false;
};

}  // namespace doorbell::model
