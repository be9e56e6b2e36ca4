// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How an engine on a thread of the CPU moves bytes: host memory itself, GPU memory through its DMA engine.
#pragma once

#include <mutex>
#include <vector>

#include "model/copier.hpp"
#include "model/deliberate_race.hpp"

namespace doorbell::model {

/// One for each engine; its functions are those of KernelMover. Copies to or from GPU memory are complete
/// after settle().
class HostMover {
 public:
  /// `atomics` is shared by all engines of the device; `copy_threads` share a large copy of this one.
  HostMover(DmaEngine& dma, std::mutex& atomics, u32 copy_threads)
      : dma_(dma), copier_(dma, copy_threads), atomics_(atomics) {}

  [[nodiscard]] bool copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
    return copier_.copy(to, from, bytes);
  }
  [[nodiscard]] bool copy_damaged(const DmaPlace& to, const DmaPlace& from, u64 bytes, u64 at);
  template <class Copy>
  [[nodiscard]] bool misplaced(Copy&& copy) {
    const DeliberateRace race;
    return copy();
  }
  [[nodiscard]] bool atomic(const DmaPlace& at, bool adds, u64 operand, u64 compare, u64& old);
  [[nodiscard]] bool pending() const { return dma_.pending(); }
  [[nodiscard]] bool settle() { return copier_.settle(); }

 private:
  const DmaEngine& dma_;
  Copier copier_;
  std::mutex& atomics_;
  std::vector<u8> scratch_;
};

}  // namespace doorbell::model
