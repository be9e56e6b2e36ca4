// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The GPU half of a model's DMA engine: copies between host and GPU memory for CPU threads, which cannot
// reach GPU memory themselves. One block serves each ring, and leaves when the ring's abort word is set.
#include <doorbell/memory_order.hpp>

#include "model/copy_words.hpp"
#include "model/dma_types.hpp"

using namespace doorbell;
using namespace doorbell::model;

namespace {

constexpr u32 kThreads = 256;
constexpr u32 kBatch = 32;  // descriptors looked at together

/// The part of a descriptor that describes the copy. Has no initialisers, because it lies in shared memory.
struct Job {
  u64 to, from, bytes;
};

/// `first` and `step` are the caller's index and count among the threads that share the copy.
__device__ void copy(const Job& d, u32 first, u32 step) {
  copy_words(reinterpret_cast<u8*>(d.to), reinterpret_cast<const u8*>(d.from), d.bytes, first, step);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) doorbell_dma_agent(DmaRing* rings) {
  __shared__ Job batch[kBatch];
  __shared__ u32 count;
  DmaRing& ring = rings[blockIdx.x];
  const u32 warps = blockDim.x / 32;
  const u32 warp = threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  u32 ticket = 0;
  for (;;) {
    if (warp == 0) {
      // Each lane reads one descriptor. The acquire of the second half, which holds the ticket, comes first,
      // so that a first half that is read after it belongs to the same descriptor.
      const auto* words = reinterpret_cast<const Word16*>(&ring.descriptors[(ticket + lane) % kCopyRing]);
      const Word16 tail = load16_acquire(words + 1);
      const bool fresh = tail.w[3] == ticket + lane + 1;
      if (fresh) {
        // The length is not in the half with the ticket and may be older, so it is read again after the
        // ticket.
        const Word16 head = load16(words);
        const Word16 length = load16(words + 1);
        batch[lane].to = static_cast<u64>(head.w[1]) << 32 | head.w[0];
        batch[lane].from = static_cast<u64>(head.w[3]) << 32 | head.w[2];
        batch[lane].bytes = static_cast<u64>(length.w[1]) << 32 | length.w[0];
      }
#if defined(__CUDACC__)
      const u32 mask = __ballot_sync(~0u, fresh);
#else
      const u32 mask = static_cast<u32>(__ballot(fresh));
#endif
      if (lane == 0) {
        count = mask == ~0u ? kBatch : static_cast<u32>(__ffs(static_cast<int>(~mask))) - 1;
        if (count == 0 && load_relaxed(&ring.abort) != 0) count = ~0u;
      }
    }
    __syncthreads();
    const u32 n = count;
    if (n == ~0u) return;
    if (n > 0) {
      for (u32 i = 0; i < n; ++i) {
        const bool large = batch[i].bytes >= 8192;
        if (large) copy(batch[i], threadIdx.x, blockDim.x);
        else if (i % warps == warp) copy(batch[i], lane, 32);
      }
    }
    __syncthreads();
    if (n > 0) {
      ticket += n;
      // The barrier orders every thread's copies before this release. The release orders them before the
      // device thread's acquire of `done`.
      if (threadIdx.x == 0) store_release(&ring.done, ticket);
    }
  }
}
