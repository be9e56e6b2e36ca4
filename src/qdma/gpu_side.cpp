// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/gpu_side.hpp"

#include <algorithm>

#include "measure/statistics.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

constexpr u32 kReferences = 7;

/// A buffer is four chunks at least, so that card and copy engine work at the same time.
GpuStreamOptions stream_of(u64 bytes, u64 chunk_bytes) {
  GpuStreamOptions o;
  o.chunk_bytes = std::clamp<u64>(bytes / o.buffers / kGranule * kGranule, kGranule, chunk_bytes);
  return o;
}

}  // namespace

GpuSide::GpuSide(Card& card, const CardUse& use, Buffer& image, const std::shared_ptr<gpu::Gpu>& gpu,
                 u64 chunk_bytes)
    : gpu_(gpu),
      image_(image.pinned_for(gpu)),
      memory_(Place::gpu, image.bytes(), gpu),
      descriptor_(card, use),
      stream_(descriptor_.transfers(), gpu, stream_of(image.bytes(), chunk_bytes)) {}

gpu::Copy GpuSide::whole(Direction direction) const {
  // The image was registered at its own address.
  return direction == Direction::card_to_host ? gpu::Copy{memory_.device(), image_.host(), image_.bytes()}
                                              : gpu::Copy{image_.host(), memory_.device(), image_.bytes()};
}

void GpuSide::upload() {
  const gpu::Copy c = whole(Direction::card_to_host);
  gpu_->copy(c.to, c.from, c.bytes);
}

void GpuSide::download() {
  const gpu::Copy c = whole(Direction::host_to_card);
  gpu_->copy(c.to, c.from, c.bytes);
}

TransferResult GpuSide::move(Direction direction, u64 address, double deadline_s) {
  return direction == Direction::card_to_host
             ? stream_.card_to_gpu(address, memory_.device(), image_.bytes(), deadline_s)
             : stream_.gpu_to_card(memory_.device(), address, image_.bytes(), deadline_s);
}

double copy_engine_rate(gpu::Gpu& gpu, std::span<const std::unique_ptr<GpuSide>> sides, Direction direction) {
  std::vector<gpu::Copy> batch;
  u64 bytes = 0;
  for (const auto& s : sides) {
    batch.push_back(s->whole(direction));
    bytes += batch.back().bytes;
  }
  std::vector<double> rates;
  for (u32 i = 0; i < kReferences; ++i) {
    const u64 begin = wall_ns();
    gpu.copy(batch);
    rates.push_back(static_cast<double>(bytes) * 1e9 / static_cast<double>(wall_ns() - begin));
  }
  return rates[measure::median_index(rates)];
}

}  // namespace doorbell::qdma
