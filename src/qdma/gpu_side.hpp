// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// GPU memory in the place of a host buffer, for measuring a card's transfers to and from it.
#pragma once

#include <span>

#include "qdma/gpu_stream.hpp"
#include "qdma/port.hpp"

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

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  Region image_;
  Region memory_;
  ChannelDescriptor descriptor_;
  GpuStream stream_;
};

/// Bytes a second of the copy engine between the images of `sides` and their GPU memory: a median of several
/// times. To the GPU for transfers from the card.
[[nodiscard]] double copy_engine_rate(gpu::Gpu& gpu, std::span<const std::unique_ptr<GpuSide>> sides,
                                      Direction direction);

}  // namespace doorbell::qdma
