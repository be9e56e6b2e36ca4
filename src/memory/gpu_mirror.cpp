// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/gpu_mirror.hpp"

#include <doorbell/gpu.hpp>

#include <array>
#include <cstring>
#include <utility>

namespace doorbell {

GpuMirror::GpuMirror(const Region& there)
    : here_(Place::pinned, there.bytes(), there.gpu()), there_(there.device()) {}

bool GpuMirror::copied(std::span<const MirrorRange> ranges, bool to_gpu) noexcept {
  std::array<gpu::Copy, MirrorSlots::kMost> copies;
  try {
    while (!ranges.empty()) {
      std::size_t n = 0;
      for (; n < ranges.size() && n < copies.size(); ++n) {
        u8* const here = here_.host() + ranges[n].offset;
        u8* const there = there_ + ranges[n].offset;
        copies[n] =
            to_gpu ? gpu::Copy{there, here, ranges[n].bytes} : gpu::Copy{here, there, ranges[n].bytes};
      }
      here_.gpu()->copy(std::span<const gpu::Copy>(copies.data(), n));
      ranges = ranges.subspan(n);
    }
    return true;
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    return false;
  }
}

void GpuMirror::fetch(std::span<const MirrorRange> ranges) noexcept {
  if (copied(ranges, false)) return;
  for (const MirrorRange& r : ranges) std::memset(here_.host() + r.offset, 0, r.bytes);
}

void GpuMirror::store(std::span<const MirrorRange> ranges) noexcept {
  (void)copied(ranges, true);
}

void GpuMirror::check() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace doorbell
