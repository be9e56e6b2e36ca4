// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Writes blocks through an NVMe queue pair, reads them back and checks every one: from a kernel when
// nvcc compiles this file, from a CPU thread when g++ does (gpu_read_cpu.cpp).
#include <doorbell/nvme.hpp>

#include <chrono>
#include <cstdio>

using namespace doorbell;
constexpr u32 kBatch = 32, kEntries = 64, kBlock = 512, kBytes = kBatch * kBlock, kBlocks = 4096;

struct Job {                                       // in memory that both sides reach
  nvme::QueuePairMemory queue;                     // addresses of whoever runs it,
  u8* data;                                        // those of a batch of blocks too,
  u64 iova;                                        // and the controller's address of the same blocks
  u32 completed, bad_status, bad_data, timed_out;  // bad_data counts batches
};

DOORBELL_HD u64 now_ns() {
#if defined(DOORBELL_ON_GPU)
  return gpu_global_ns();
#else
  return static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
#endif
}

/// Writes every block, then reads it back, a batch at a time: fill or poison, post, ring, poll, check.
template <class Warp>
DOORBELL_HD void write_then_read(const Warp& warp, Job* shared) {
  Job job = *shared;
  nvme::QueuePair<Warp> queue(job.queue);
  for (u64 n = 0; n < 2 * kBlocks && job.timed_out == 0; n += kBatch) {
    const auto op = n < kBlocks ? nvme::IoOpcode::write : nvme::IoOpcode::read;
    const u64 lba = n % kBlocks;
    const pattern::Identity first{/*seed*/ 7, /*address*/ lba * kBlock, /*sequence*/ 1};
    if (op == nvme::IoOpcode::write) pattern::fill(warp, job.data, kBytes, first);
    else pattern::poison(warp, job.data, kBytes);
    queue.post(warp, kBatch, [&](u32 i) {
      return nvme::io_command(op, static_cast<u16>(i), /*nsid*/ 1, lba + i, 1, job.iova + i * kBlock, 0);
    });
    queue.ring(warp);
    const u64 deadline = warp.shfl(now_ns(), 0) + 2'000'000'000;
    for (const u32 all = job.completed + kBatch; job.completed < all && job.timed_out == 0;) {
      const auto polled = queue.poll(warp);  // lane i < count holds completion i
      const bool bad = polled.mine.cid >= kBatch || !nvme::status_of(polled.mine).ok();
      job.bad_status += count_bits(warp.ballot(warp.lane() < polled.count && bad));  // the same on every lane
      job.completed += polled.count;
      if (polled.count > 0) queue.ring_cq(warp);
      else if (warp.shfl(now_ns(), 0) > deadline) job.timed_out = all - job.completed;
    }
    if (pattern::check(warp, job.data, kBytes, {first}).verdict != pattern::Verdict::ok) ++job.bad_data;
  }
  if (warp.lane() == 0) *shared = job;
}

#if defined(__CUDACC__)
constexpr auto kWho = Initiator::gpu;
__global__ void kernel(Job* job) {
  write_then_read(GpuWarp{}, job);
}
#else
constexpr auto kWho = Initiator::cpu;
#endif

int main(int argc, char** argv) try {
  const bool gpu = kWho == Initiator::gpu;
#if defined(__CUDACC__)
  cudaFuncAttributes loaded;  // loads the kernel now, before the model's own kernel runs, and stays
  (void)cudaFuncGetAttributes(&loaded, kernel);
#endif
  const auto controller =
      nvme::Controller::open(argc > 1 ? argv[1] : "model", {.gpu = gpu ? gpu::open(0) : nullptr});
  (void)controller->request_queues(1);
  const auto pair = controller->create_queue_pair(/*qid*/ 1, kEntries, Place::pinned, Place::pinned);
  const Mapped data = controller->allocate(Place::pinned, kBytes);
  const Region memory(Place::pinned, sizeof(Job), controller->gpu());
  Job& job = *reinterpret_cast<Job*>(memory.host());
  job = {pair.memory(kWho), gpu ? data.region().device() : data.region().host(), data.iova(), 0, 0, 0, 0};
#if defined(__CUDACC__)
  cudaStream_t stream;  // not the device: the model's own kernel runs on
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  kernel<<<1, GpuWarp::size, 0, stream>>>(reinterpret_cast<Job*>(memory.device()));
  if (cudaStreamSynchronize(stream) != cudaSuccess) job.timed_out = kBlocks;
#else
  write_then_read(OneLane{}, &job);
#endif
  std::printf("%u completed, %u bad status, %u batches of bad data, %u timed out\n", job.completed,
              job.bad_status, job.bad_data, job.timed_out);
  return job.completed == 2 * kBlocks && job.bad_status + job.bad_data + job.timed_out == 0 ? 0 : 2;
} catch (const Error& e) {
  std::fprintf(stderr, "gpu_read: %s\n%s\n", e.what(), e.hint().c_str());
  return static_cast<int>(e.code());
}
