// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Windows of packets on a GPU: src/net/assembly/assemble.hpp says what each kernel does.
#include <doorbell/memory_order.hpp>

#include "net/assembly/assemble.hpp"

using namespace doorbell;
using namespace doorbell::net;

namespace {

__device__ u32 this_warp() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / GpuWarp::size;
}
__device__ u32 all_warps() {
  return gridDim.x * blockDim.x / GpuWarp::size;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) doorbell_net_gather(GatherJob job) {
  gather(GpuWarp{}, job, this_warp(), all_warps());
}

extern "C" __global__ void __launch_bounds__(256) doorbell_net_place(PlaceJob job) {
  place(GpuWarp{}, job, this_warp(), all_warps());
}

extern "C" __global__ void __launch_bounds__(256) doorbell_net_zero(ZeroJob job) {
  zero_slots(GpuWarp{}, job, this_warp(), all_warps());
}

extern "C" __global__ void __launch_bounds__(256) doorbell_net_check(CheckJob job) {
  check_slots(GpuWarp{}, job, this_warp(), all_warps());
}

/// Behind other work of its stream: reports to the host that all of it is done.
extern "C" __global__ void doorbell_net_mark(u64* word, u64 value) {
  if (blockIdx.x == 0 && threadIdx.x == 0) store64_release(word, value);
}
