// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The frame of a kernel that is a device. For GPU code only.
#pragma once

#include <doorbell/warp.hpp>

#include "gpu/constant.hpp"

namespace doorbell::model {

/// One block that serves until it is told to end: its first warp runs `Served`, the others move data for it.
/// `shared`: sizeof(Served::Memory) bytes, which start as zeros.
template <class Served, class Job>
__device__ void serve_block(const Job& given, u64* shared) {
  __shared__ gpu::Constant<Job> shared_job;
  for (u32 i = threadIdx.x; i < sizeof(typename Served::Memory) / sizeof(u64); i += blockDim.x) shared[i] = 0;
  __syncthreads();
  const GpuWarp warp;
  const u32 number = threadIdx.x / GpuWarp::size, helpers = blockDim.x / GpuWarp::size - 1;
  auto& memory = *reinterpret_cast<typename Served::Memory*>(shared);
  if (number > 0) {
    memory.jobs.help(warp, number - 1, helpers);
    return;
  }
  const Job& job = shared_job.copy(warp, given);
  Served engine(warp, job, blockIdx.x, memory, helpers);
  while (engine.round() != Served::Round::ended) {
  }
}

}  // namespace doorbell::model
