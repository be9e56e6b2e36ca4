// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One-sided operations from a GPU: one warp for each queue runs the same loop as a CPU thread. A path's
// kernels instantiate this one for its kinds of queue. Each kind has a source file of its own, so that they
// compile in parallel.
#pragma once

#include <doorbell/warp.hpp>

#include "gpu/constant.hpp"
#include "measure/gpu_job.hpp"
#include "rma/op_loop.hpp"

namespace doorbell::rma::kernel {

template <class Queue>
using OpJob = measure::GpuJob<OpPhase, OpQueue, OpState<typename Queue::State>>;

/// Launch with one block of one warp for each queue, and OpScratch::bytes(window, kBuckets) of dynamic shared
/// memory.
template <class Queue, bool Substeps>
__device__ void run(const OpJob<Queue>* job) {
  if (job == nullptr) return;  // this launch only makes the GPU reserve resources
  extern __shared__ u64 shared[];
  const GpuWarp warp;
  const u32 q = blockIdx.x;
  __shared__ gpu::Constant<OpPhase> shared_phase;
  __shared__ gpu::Constant<OpQueue> shared_queue;
  __shared__ gpu::Constant<OpState<typename Queue::State>> shared_state;
  const OpPhase& phase = shared_phase.copy(warp, job->phase);
  const OpQueue& queue = shared_queue.copy(warp, job->items[q]);
  const OpState<typename Queue::State>& state = shared_state.copy(warp, job->states[q]);
  const OpScratch scratch = carve_op_scratch(shared, phase.window, histogram::kBuckets);
  for (u32 i = warp.lane(); i < histogram::kBuckets; i += GpuWarp::size) scratch.bins[i] = 0;
  warp.sync();

  OpLoop<GpuWarp, GpuClock, Substeps, Queue> loop(warp, phase, queue, state, scratch, job->stats + q);
  while (loop.step(warp)) {
  }
  loop.finish(warp);

  if (warp.lane() == 0) job->states[q] = loop.state();
  u64* const bins = job->bins + static_cast<u64>(q) * histogram::kBuckets;
  for (u32 i = warp.lane(); i < histogram::kBuckets; i += GpuWarp::size)
    if (scratch.bins[i] != 0) bins[i] += scratch.bins[i];
}

}  // namespace doorbell::rma::kernel

/// Defines the kernels NAME and NAME_substeps over the queue type that follows; each takes an OpJob.
#define DOORBELL_OP_KERNELS(name, ...)                                        \
  extern "C" __global__ void __launch_bounds__(64, 1)                         \
      name(const doorbell::rma::kernel::OpJob<__VA_ARGS__>* job) {            \
    doorbell::rma::kernel::run<__VA_ARGS__, false>(job);                      \
  }                                                                           \
  extern "C" __global__ void __launch_bounds__(64, 1)                         \
      name##_substeps(const doorbell::rma::kernel::OpJob<__VA_ARGS__>* job) { \
    doorbell::rma::kernel::run<__VA_ARGS__, true>(job);                       \
  }
