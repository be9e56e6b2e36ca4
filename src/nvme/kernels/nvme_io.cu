// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NVMe from a GPU: one warp a queue pair runs the same loop as a CPU thread.
#include <doorbell/warp.hpp>

#include "gpu/constant.hpp"
#include "measure/check_kernel.hpp"
#include "measure/gpu_job.hpp"
#include "nvme/io_loop.hpp"

using namespace doorbell;
using namespace doorbell::nvme;

namespace {

using IoJob = measure::GpuJob<IoPhase, IoQueue, QueuePairState>;

/// Launch one block of one warp a queue, with IoScratch::bytes(window, kBuckets) of dynamic shared memory.
template <bool Substeps>
__device__ void run(const IoJob* job) {
  if (job == nullptr) return;  // launched only so that the GPU has made room for it
  extern __shared__ u64 shared[];
  const GpuWarp warp;
  const u32 q = blockIdx.x;
  __shared__ gpu::Constant<IoPhase> shared_phase;
  __shared__ gpu::Constant<IoQueue> shared_queue;
  const IoPhase& phase = shared_phase.copy(warp, job->phase);
  const IoQueue& queue = shared_queue.copy(warp, job->items[q]);
  const IoScratch scratch = carve_scratch(shared, phase.window, histogram::kBuckets);
  u32* const slots = job->slots + static_cast<u64>(q) * phase.window;
  for (u32 i = warp.lane(); i < phase.window; i += GpuWarp::size) scratch.state[i] = slots[i];
  for (u32 i = warp.lane(); i < histogram::kBuckets; i += GpuWarp::size) scratch.bins[i] = 0;
  warp.sync();

  IoLoop<GpuWarp, GpuClock, Substeps> loop(warp, phase, queue, job->states[q], scratch, job->stats + q);
  while (loop.step(warp)) {
  }
  loop.finish(warp);

  if (warp.lane() == 0) job->states[q] = loop.state();
  for (u32 i = warp.lane(); i < phase.window; i += GpuWarp::size) slots[i] = scratch.state[i];
  u64* const bins = job->bins + static_cast<u64>(q) * histogram::kBuckets;
  for (u32 i = warp.lane(); i < histogram::kBuckets; i += GpuWarp::size)
    if (scratch.bins[i] != 0) bins[i] += scratch.bins[i];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(64) doorbell_nvme_io(const IoJob* job) {
  run<false>(job);
}
extern "C" __global__ void __launch_bounds__(64) doorbell_nvme_io_substeps(const IoJob* job) {
  run<true>(job);
}
extern "C" __global__ void __launch_bounds__(measure::kCheckThreads)
    doorbell_nvme_checks(const measure::CheckJob<IoPhase, IoQueue>* job) {
  measure::run_checkers<IoPayload<GpuWarp>>(job);
}
