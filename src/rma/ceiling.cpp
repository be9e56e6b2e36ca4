// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/ceiling.hpp"

#include <doorbell/gpu.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include "system/clock.hpp"

namespace doorbell::rma {

namespace {
constexpr double kMeasureNs = 1e8;
constexpr u64 kTogether = 64 << 20;  // bytes given to a copy engine at once, so that waiting costs little
}  // namespace

Ceiling measure_ceiling(u64 bytes, u32 window, Place from, Place to, const std::shared_ptr<gpu::Gpu>& gpu,
                        double work) {
  const bool on_gpu = from == Place::gpu || to == Place::gpu;
  const Region source(from, bytes * window, gpu);
  const Region target(to, bytes * window, gpu);
  std::vector<gpu::Copy> batch;
  const u64 turns = on_gpu ? std::max<u64>(1, kTogether / (bytes * window)) : 1;
  for (u64 i = 0; on_gpu && i < turns * window; ++i)
    batch.push_back({target.device() + i % window * bytes, source.device() + i % window * bytes, bytes});
  if (!on_gpu) {  // the first access to a page must not be part of a copy
    std::memset(source.host(), 1, source.bytes());
    std::memset(target.host(), 2, target.bytes());
  }
  const auto round = [&] {
    if (on_gpu) {
      gpu->copy(batch);
      return;
    }
    for (u32 i = 0; i < window; ++i) std::memcpy(target.host() + i * bytes, source.host() + i * bytes, bytes);
  };
  round();
  u64 rounds = 0;
  const u64 begin = wall_ns();
  u64 now = begin;
  do {
    round();
    ++rounds;
    now = wall_ns();
  } while (static_cast<double>(now - begin) < kMeasureNs * work);
  return {on_gpu ? "copy engine" : "memcpy, one thread",
          static_cast<double>(rounds * turns) * static_cast<double>(window) * static_cast<double>(bytes) *
              1e9 / static_cast<double>(now - begin)};
}

}  // namespace doorbell::rma
