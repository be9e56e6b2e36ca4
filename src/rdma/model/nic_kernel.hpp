// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The kernel of a format's NIC. For GPU code only.
#pragma once

#include <doorbell/gpu_clock.hpp>

#include "measure/gpu_constant.hpp"
#include "rdma/model/served_engine.hpp"

namespace doorbell::rdma {

/// One block of a kernel that is a NIC, until it is told to end. `shared`: sizeof(ServedMemory) bytes.
template <class F>
__device__ void serve(const ServerJob& given, u64* shared) {
  using Served = ServedEngine<F, GpuWarp, GpuClock>;
  __shared__ measure::Constant<ServerJob> shared_job;
  for (u32 i = threadIdx.x; i < sizeof(typename Served::Memory) / sizeof(u64); i += blockDim.x) shared[i] = 0;
  __syncthreads();
  const GpuWarp warp;
  const u32 number = threadIdx.x / GpuWarp::size, helpers = blockDim.x / GpuWarp::size - 1;
  auto& memory = *reinterpret_cast<typename Served::Memory*>(shared);
  if (number > 0) {
    memory.jobs.help(warp, number - 1, helpers);
    return;
  }
  const ServerJob& job = shared_job.copy(warp, given);
  Served engine(warp, job, blockIdx.x, memory, helpers);
  while (engine.round() != Served::Round::ended) {
  }
}

}  // namespace doorbell::rdma

// Launch a block of kServerThreads for each engine, with sizeof(ServedMemory) bytes of dynamic shared memory.
#define DOORBELL_NIC_KERNEL(name, Format)                                         \
  extern "C" __global__ void __launch_bounds__(doorbell::rdma::kServerThreads, 1) \
      name(const doorbell::rdma::ServerJob* job) {                                \
    extern __shared__ __align__(16) doorbell::u64 shared[];                       \
    doorbell::rdma::serve<Format>(*job, shared);                                  \
  }
