// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel that is a Cassini. For GPU code only.
#pragma once

#include <doorbell/gpu_clock.hpp>

#include "cxi/model/served_engine.hpp"
#include "measure/gpu_constant.hpp"

namespace doorbell::cxi {

/// One block that is the device, until it is told to end. `shared`: sizeof(ServedMemory) bytes.
__device__ inline void serve(const ServerJob& given, u64* shared) {
  using Served = ServedEngine<GpuWarp, GpuClock>;
  __shared__ measure::Constant<ServerJob> shared_job;
  for (u32 i = threadIdx.x; i < sizeof(Served::Memory) / sizeof(u64); i += blockDim.x) shared[i] = 0;
  __syncthreads();
  const GpuWarp warp;
  const u32 number = threadIdx.x / GpuWarp::size, helpers = blockDim.x / GpuWarp::size - 1;
  auto& memory = *reinterpret_cast<Served::Memory*>(shared);
  if (number > 0) {
    memory.jobs.help(warp, number - 1, helpers);
    return;
  }
  const ServerJob& job = shared_job.copy(warp, given);
  Served engine(warp, job, blockIdx.x, memory, helpers);
  while (engine.round() != Served::Round::ended) {
  }
}

}  // namespace doorbell::cxi
