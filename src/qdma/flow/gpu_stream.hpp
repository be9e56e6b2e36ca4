// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Card memory to GPU memory and back. The driver's buffers are no dma-bufs and it takes no others, so bytes
// go through buffers in host memory that are registered with the GPU; card and copy engine work at the same
// time.
#pragma once

#include <doorbell/gpu.hpp>
#include <doorbell/qdma/card.hpp>
#include <doorbell/region.hpp>

#include <memory>
#include <vector>

namespace doorbell::qdma {

struct GpuStreamOptions {
  u64 chunk_bytes = 16 << 20;  ///< of each buffer; whole granules
  u32 buffers = 4;             ///< at least 2
};

/// Thread rule: one thread at a time, and no other thread submits or completes on the descriptor meanwhile.
class GpuStream {
 public:
  /// `descriptor` must outlive it. Throws Error.
  GpuStream(TransferDescriptor& descriptor, std::shared_ptr<gpu::Gpu> gpu,
            const GpuStreamOptions& options = {});

  /// Blocking. `memory` is the GPU's, `bytes` long. After an error some of it may have been written.
  [[nodiscard]] TransferResult card_to_gpu(u64 address, void* memory, u64 bytes, double deadline_s = 0);
  [[nodiscard]] TransferResult gpu_to_card(const void* memory, u64 address, u64 bytes, double deadline_s = 0);
  /// The GPU's part of one of these alone: the same copies between the same buffers and `memory`.
  void copy_alone(Direction direction, void* memory, u64 bytes);

 private:
  struct Slot {
    Buffer buffer;
    Region pinned;
  };
  /// Runs chunks through the slots; `gpu_side(slot, offset, bytes)` copies.
  template <class Fn>
  [[nodiscard]] TransferResult run(Direction direction, u64 address, u64 bytes, double deadline_s,
                                   Fn gpu_side);

  TransferDescriptor* descriptor_;
  std::shared_ptr<gpu::Gpu> gpu_;
  u64 chunk_;
  std::vector<Slot> slots_;
};

}  // namespace doorbell::qdma
