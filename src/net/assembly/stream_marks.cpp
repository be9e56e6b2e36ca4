// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/stream_marks.hpp"

#include <doorbell/memory_order.hpp>

#include <algorithm>
#include <array>

#include "system/clock.hpp"

namespace doorbell::net {
namespace {

// A stream is shared, so it may go on long after a mark: look again at least this often.
constexpr u64 kLookAgainNs = 50'000;

}  // namespace

StreamMarks::StreamMarks(std::shared_ptr<gpu::Gpu> gpu, gpu::Stream stream)
    : gpu_(std::move(gpu)),
      stream_(stream),
      kernel_(gpu_->kernel("doorbell_net_mark")),
      word_(Place::pinned, sizeof(u64), gpu_) {}

u64 StreamMarks::mark() {
  u8* word = word_.device();
  u64 value = ++last_;
  std::array<void*, 2> args = {&word, &value};
  gpu_->launch(kernel_, {.blocks = 1, .threads = 1, .shared_bytes = 0}, stream_, args);
  return value;
}

bool StreamMarks::reached(u64 mark) const {
  // Pairs with the kernel's release: what the stream did before the mark is visible behind this.
  return load64_acquire(reinterpret_cast<const u64*>(word_.host())) >= mark;
}

bool StreamMarks::wait(u64 mark, u64 limit_ns) {
  const u64 end = wall_ns() + limit_ns;
  while (!reached(mark)) {
    const u64 now = wall_ns();
    if (now >= end) return false;
    (void)gpu_->wait(stream_, std::min(end - now, kLookAgainNs));
  }
  return true;
}

}  // namespace doorbell::net
