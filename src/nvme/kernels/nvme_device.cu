// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A model controller's I/O queues on the GPU that uses them: one block a server, until it is told to end.
#include <doorbell/warp.hpp>

#include "gpu/constant.hpp"
#include "nvme/model/queue_server.hpp"

using namespace doorbell;
using namespace doorbell::nvme;

namespace {

struct Block {
  [[nodiscard]] __device__ u32 warp() const { return threadIdx.x / GpuWarp::size; }
  [[nodiscard]] __device__ u32 warps() const { return blockDim.x / GpuWarp::size; }
  __device__ void sync() const { __syncthreads(); }
};

}  // namespace

/// Launch a block of one or more warps for each server, with sizeof(ServerMemory) bytes of dynamic shared
/// memory.
extern "C" __global__ void __launch_bounds__(kServerThreads, 1) doorbell_nvme_device(const ServerJob* given) {
  extern __shared__ u64 shared[];
  __shared__ gpu::Constant<ServerJob> shared_job;
  for (u32 i = threadIdx.x; i < sizeof(ServerMemory) / sizeof(u64); i += blockDim.x) shared[i] = 0;
  const GpuWarp warp;
  const Block block;
  const ServerJob& job = shared_job.copy(warp, *given);
  block.sync();
  QueueServer<GpuWarp, GpuClock, Block> server(warp, block, job, blockIdx.x,
                                               *reinterpret_cast<ServerMemory*>(shared));
  using Round = decltype(server)::Round;
  while (server.round() != Round::ended) {
  }
}
