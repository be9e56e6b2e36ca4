// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// GPU memory in the place of a host buffer, for measuring a card's transfers to and from it.
#pragma once

#include <span>

#include "qdma/bench/port.hpp"
#include "qdma/flow/gpu_stream.hpp"

namespace doorbell::qdma {

/// Thread rule: as GpuStream's.
class GpuSide {
 public:
  /// GPU memory for the bytes of `image`, which must outlive it, and a stream of its own to the card, in
  /// chunks of so many bytes. Throws Error.
  GpuSide(Card& card, const CardUse& use, Buffer& image, const std::shared_ptr<gpu::Gpu>& gpu,
          u64 chunk_bytes);

  /// The image's bytes to GPU memory, and back.
  void upload();
  void download();
  /// All bytes between GPU memory and the card, in chunks through host buffers. Blocking.
  [[nodiscard]] TransferResult move(Direction direction, u64 address, double deadline_s);

  /// One copy of all bytes to GPU memory or from it, for a batch that the copy engine makes alone.
  [[nodiscard]] gpu::Copy whole(Direction direction) const;
  /// The GPU's part of move() alone.
  void copy_alone(Direction direction) { stream_.copy_alone(direction, memory_.device(), memory_.bytes()); }
  [[nodiscard]] u64 bytes() const { return image_.bytes(); }

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  Region image_;
  Region memory_;
  ChannelDescriptor descriptor_;
  GpuStream stream_;
};

/// Bytes a second of the copy engine alone between host memory and the GPU memory of `sides`, to the GPU for
/// transfers from the card: the best of several times, each with one batch of all images, and with a thread
/// for each side that makes the copies of its transfers. Nothing that goes through the card is faster.
[[nodiscard]] double copy_engine_rate(gpu::Gpu& gpu, std::span<const std::unique_ptr<GpuSide>> sides,
                                      Direction direction);

}  // namespace doorbell::qdma
