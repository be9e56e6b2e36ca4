// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/flow/gpu_stream.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

/// A completion comes at its transfer's deadline at the latest, and is waited for this long at a time.
constexpr double kWaitS = 1;

}  // namespace

GpuStream::GpuStream(TransferDescriptor& descriptor, std::shared_ptr<gpu::Gpu> gpu, const GpuStreamOptions& o)
    : descriptor_(&descriptor), gpu_(std::move(gpu)), chunk_(o.chunk_bytes) {
  if (o.buffers < 2 || o.buffers > TransferDescriptor::kMaxSubmitted)
    throw Error(fmt::format("a stream of {} buffers", o.buffers),
                fmt::format("there are 2 to {}", TransferDescriptor::kMaxSubmitted));
  if (chunk_ == 0 || chunk_ % kGranule != 0)
    throw Error(fmt::format("chunks of {} bytes", chunk_), fmt::format("they are multiples of {}", kGranule));
  for (u32 i = 0; i < o.buffers; ++i) {
    Buffer buffer = descriptor_->create_buffer(chunk_);
    Region pinned = buffer.pinned_for(gpu_);
    slots_.push_back({std::move(buffer), std::move(pinned)});
  }
}

template <class Fn>
TransferResult GpuStream::run(Direction direction, u64 address, u64 bytes, double deadline_s, Fn gpu_side) {
  TransferResult r;
  const u64 begin = wall_ns();
  const u64 chunks = (bytes + chunk_ - 1) / chunk_;
  const auto size_of = [&](u64 chunk) { return std::min(chunk_, bytes - chunk * chunk_); };
  u64 begun = 0, ended = 0;
  std::exception_ptr failure;
  const auto begin_next = [&] {
    const u64 chunk = begun;
    double left = 0;
    if (deadline_s > 0) {
      left = deadline_s - static_cast<double>(wall_ns() - begin) * 1e-9;
      if (left <= 0) {
        r.error = ETIMEDOUT;
        return;
      }
    }
    Slot& s = slots_[chunk % slots_.size()];
    if (direction == Direction::host_to_card) gpu_side(s.buffer.data(), chunk * chunk_, size_of(chunk));
    static_cast<void>(
        descriptor_->submit(direction, s.buffer, 0, address + chunk * chunk_, size_of(chunk), left, chunk));
    ++begun;
  };
  // A chunk's buffer is free again when its completion has been handled, so a slot waits for its own chunk.
  std::vector<bool> done(slots_.size(), true);
  std::vector<TransferCompletion> completions(slots_.size());
  while (ended < begun || (begun < chunks && r.error == 0 && !failure)) {
    try {
      while (begun < chunks && r.error == 0 && !failure && done[begun % slots_.size()]) {
        const u64 slot = begun % slots_.size();
        const u64 before = begun;
        begin_next();
        if (begun != before) done[slot] = false;
      }
      if (ended == begun) continue;
      const u32 n = descriptor_->complete(completions, kWaitS);
      for (u32 i = 0; i < n; ++i) {
        TransferCompletion& c = completions[i];
        ++ended;
        done[c.user % slots_.size()] = true;
        r.bytes += c.result.bytes;
        r.parts.insert(r.parts.end(), c.result.parts.begin(), c.result.parts.end());
        if (r.error == 0) r.error = c.result.error;
        if (c.result.error == 0 && r.error == 0 && !failure && direction == Direction::card_to_host)
          gpu_side(slots_[c.user % slots_.size()].buffer.data(), c.user * chunk_, size_of(c.user));
      }
    } catch (...) {
      // Transfers that have begun must end before the buffers are used again.
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return r;
}

void GpuStream::copy_alone(Direction direction, void* memory, u64 bytes) {
  for (u64 offset = 0, chunk = 0; offset < bytes; offset += chunk_, ++chunk) {
    u8* const host = slots_[chunk % slots_.size()].buffer.data();
    u8* const there = static_cast<u8*>(memory) + offset;
    const u64 n = std::min(chunk_, bytes - offset);
    if (direction == Direction::card_to_host) gpu_->copy(there, host, n);
    else gpu_->copy(host, there, n);
  }
}

TransferResult GpuStream::card_to_gpu(u64 address, void* memory, u64 bytes, double deadline_s) {
  return run(Direction::card_to_host, address, bytes, deadline_s,
             [&](u8* host, u64 offset, u64 n) { gpu_->copy(static_cast<u8*>(memory) + offset, host, n); });
}

TransferResult GpuStream::gpu_to_card(const void* memory, u64 address, u64 bytes, double deadline_s) {
  return run(Direction::host_to_card, address, bytes, deadline_s, [&](u8* host, u64 offset, u64 n) {
    gpu_->copy(host, static_cast<const u8*>(memory) + offset, n);
  });
}

}  // namespace doorbell::qdma
