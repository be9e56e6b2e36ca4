// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel that checks payloads beside a kernel that drives queues. It is a kernel of its own, so that its
// warps have few registers and the loop's warp has many; the two share a CheckRing a queue in GPU memory. For
// GPU code only.
#pragma once

#include "gpu/constant.hpp"
#include "loop/check_ring.hpp"
#include "measure/gpu_job.hpp"

namespace doorbell::measure {

/// Leaves the multiprocessor to others for a moment.
__device__ inline void pause() {
#if defined(DOORBELL_ON_CUDA)
  __nanosleep(40);
#elif defined(DOORBELL_ON_HIP)
  __builtin_amdgcn_s_sleep(1);
#endif
}

/// Launch with job->blocks blocks of up to kCheckThreads threads for each queue. `Payload`: what Checker
/// takes, made from a phase and an item.
template <class Payload, class Phase, class Item>
__device__ void run_checkers(const CheckJob<Phase, Item>* job) {
  if (job == nullptr) return;  // this launch only makes the GPU reserve resources
  const GpuWarp warp;
  __shared__ gpu::Constant<Phase> shared_phase;
  __shared__ gpu::Constant<Item> shared_item;
  const u32 queue = blockIdx.x / job->blocks;
  if (threadIdx.x < GpuWarp::size) {
    shared_phase.copy(warp, job->phase);
    shared_item.copy(warp, job->items[queue]);
  }
  __syncthreads();
  const Phase& phase = shared_phase.get();
  const Item& item = shared_item.get();
  const CheckRing& ring = item.checks;
  const u32 number = (blockIdx.x % job->blocks) * (blockDim.x / GpuWarp::size) + threadIdx.x / GpuWarp::size;
  if (number >= ring.checkers) return;
  const auto abandoned = [&] { return warp.shfl(load_relaxed(ring.abandon), 0) != 0; };

  Checker<GpuWarp, Payload> checker(ring, Payload(phase, item), number);
  // The loop's kernel may start later than this one.
  while (warp.shfl(static_cast<u32>(checker.begun()), 0) == 0) {
    if (abandoned()) return;
    pause();
  }
  for (u32 idle = 0;;) {
    if (checker.step(warp)) {
      idle = 0;
      continue;
    }
    if (checker.over(warp)) return;
    pause();
    // The word lies in host memory, so it is looked at rarely.
    if (++idle % 4096 == 0 && abandoned()) return;
  }
}

}  // namespace doorbell::measure
