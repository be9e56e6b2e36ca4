// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/gpu_side.hpp"

#include <algorithm>
#include <barrier>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

constexpr u32 kReferences = 7;
constexpr u64 kBytesAThread = u64{16} << 20, kMostRounds = 64;  // of one reference

/// A buffer is four chunks at least, so that card and copy engine work at the same time.
GpuStreamOptions stream_of(u64 bytes, u64 chunk_bytes) {
  GpuStreamOptions o;
  o.chunk_bytes = std::clamp<u64>(bytes / o.buffers / kGranule * kGranule, kGranule, chunk_bytes);
  return o;
}

/// Bytes a second of a thread for each side, from the first start to the last end.
double in_threads(std::span<const std::unique_ptr<GpuSide>> sides, Direction direction) {
  // So that the start of the threads costs little.
  const u64 rounds = std::clamp<u64>(kBytesAThread / sides.front()->bytes(), 1, kMostRounds);
  std::barrier start(static_cast<std::ptrdiff_t>(sides.size()));
  std::vector<std::pair<u64, u64>> times(sides.size());
  std::vector<std::exception_ptr> failures(sides.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < sides.size(); ++i)
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      times[i].first = wall_ns();
      try {
        for (u64 r = 0; r < rounds; ++r) sides[i]->copy_alone(direction);
      } catch (...) {
        failures[i] = std::current_exception();
      }
      times[i].second = wall_ns();
    });
  for (std::thread& t : threads) t.join();
  u64 begin = ~u64{0}, end = 0, bytes = 0;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (failures[i]) std::rethrow_exception(failures[i]);
    begin = std::min(begin, times[i].first);
    end = std::max(end, times[i].second);
    bytes += rounds * sides[i]->bytes();
  }
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<u64>(end - begin, 1));
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
  double best = 0;
  for (u32 i = 0; i < kReferences; ++i) {
    const u64 begin = wall_ns();
    gpu.copy(batch);
    best = std::max({best, static_cast<double>(bytes) * 1e9 / static_cast<double>(wall_ns() - begin),
                     in_threads(sides, direction)});
  }
  return best;
}

}  // namespace doorbell::qdma
