// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Puts buffers through a Cassini's command queue to the same endpoint, and checks every byte at the other
// side: from a kernel when nvcc compiles this file, from a CPU thread when g++ does (cxi_put_cpu.cpp).
#include <doorbell/cxi.hpp>

#include <chrono>
#include <cstdio>

using namespace doorbell;
constexpr u32 kPuts = 256, kBytes = 8192;
constexpr u64 kTimeoutNs = 2'000'000'000;

struct Job {                 // in memory that both sides reach
  cxi::PutQueueState state;  // with the addresses of whoever runs it,
  u8 *source, *target;       // and those of the data
  rma::WorkRequest put;
  u32 good = 0, bad_data = 0, timed_out = 0;
  rma::Status status = rma::Status::ok;
};

DOORBELL_HD u64 now_ns() {
#if defined(DOORBELL_ON_GPU)
  return gpu_global_ns();
#else
  return static_cast<u64>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
#endif
}

/// Fills the source, spoils the target, puts, waits, and looks at what has arrived; until the first error.
template <class Warp>
DOORBELL_HD void put_all(const Warp& warp, Job* shared) {
  Job job = *shared;
  cxi::PutQueue<Warp> queue(job.state);
  for (u64 n = 0; n < kPuts; ++n) {
    const pattern::Identity first{/*seed*/ 7, /*address*/ n * kBytes, /*sequence*/ n};
    pattern::fill(warp, job.source, kBytes, first);
    pattern::poison(warp, job.target, kBytes);
    queue.post(warp, 1, [&](u32) { return job.put; });
    (void)queue.ring(warp);
    const u64 deadline = warp.shfl(now_ns(), 0) + kTimeoutNs;  // of lane 0: all lanes leave the loop together
    auto polled = queue.poll(warp);
    while (polled.count == 0 && warp.shfl(now_ns(), 0) < deadline) polled = queue.poll(warp);
    job.timed_out = polled.count == 0 ? 1 : 0;
    job.status = polled.mine.status;
    if (job.timed_out != 0 || job.status != rma::Status::ok) break;
    const auto verdict = pattern::check(warp, job.target, kBytes, {first}).verdict;
    ++(verdict == pattern::Verdict::ok ? job.good : job.bad_data);
  }
  if (warp.lane() == 0) *shared = job;
}

#if defined(__CUDACC__)
constexpr auto kWho = Initiator::gpu;
__global__ void kernel(Job* job) {
  put_all(GpuWarp{}, job);
}
#else
constexpr auto kWho = Initiator::cpu;
#endif

int main(int argc, char** argv) try {
#if defined(__CUDACC__)
  cudaFuncAttributes loaded;  // loads the kernel now, before a model's own kernel runs, and stays
  (void)cudaFuncGetAttributes(&loaded, kernel);
  cudaStream_t stream;  // not the device: a model's kernel runs on
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
#endif
  const auto gpu = kWho == Initiator::gpu ? gpu::open(0) : nullptr;
  cxi::CassiniRequest request{.device = argc > 1 ? argv[1] : "cxi-model0", .initiator = kWho};
  if (gpu) request.gpus = {gpu};
  const auto nic = cxi::open_cassini(request);
  const auto endpoint = nic->open();
  const Region source = nic->allocate(Place::pinned, kBytes, gpu),
               target = nic->allocate(Place::pinned, kBytes, gpu);
  const auto from = endpoint->map(source, Access::read), to = endpoint->map(target, Access::read_write);
  cxi::PortalsTable table(*endpoint);
  const auto exposed = table.expose(*to);
  cxi::PutQueueObject queue(*endpoint, {.requests = 8});
  const Region memory(Place::pinned, sizeof(Job), gpu);
  Job& job = *reinterpret_cast<Job*>(memory.host());
  job = {.state = queue.start(kWho, endpoint->address()),
         .source = gpu ? source.device() : source.host(),
         .target = gpu ? target.device() : target.host(),
         .put = {.bytes = kBytes, .local = from->iova(), .lkey = from->lac(), .rkey = exposed->offset()}};
#if defined(__CUDACC__)
  kernel<<<1, GpuWarp::size, 0, stream>>>(reinterpret_cast<Job*>(memory.device()));
  if (cudaStreamSynchronize(stream) != cudaSuccess) job.status = rma::Status::fatal;
#else
  put_all(OneLane{}, &job);
#endif
  std::printf("%s: %u puts arrived, %u with wrong bytes, %u timed out, status %u\n", nic->name().c_str(),
              job.good + job.bad_data, job.bad_data, job.timed_out, static_cast<unsigned>(job.status));
  return job.good == kPuts ? 0 : 2;
} catch (const Error& e) {
  std::fprintf(stderr, "cxi_put: %s\n%s\n", e.what(), e.hint().c_str());
  return static_cast<int>(e.code());
}
