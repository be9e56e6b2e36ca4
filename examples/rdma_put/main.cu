// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Puts buffers through a pair of queue pairs in each vendor's queue format, and checks every byte at the
// other side: from a kernel when nvcc compiles this file, from a CPU thread when g++ does (rdma_put_cpu.cpp).
#include <doorbell/rdma.hpp>

#include <cstdio>
#include <vector>

using namespace doorbell;
constexpr u32 kPuts = 256, kBytes = 8192;

struct Job {                   // in memory that both sides reach
  rdma::QueuePairState state;  // with the addresses of whoever runs it,
  u8 *source, *target;         // and those of the data
  rdma::LocalAddress from;     // the NIC's addresses and keys of the same
  rdma::RemoteAddress to;
  u32 good = 0, bad_data = 0;
  rdma::Status status = rdma::Status::ok;
};

/// Fills the source, spoils the target, puts, and looks at what has arrived there; until the first error.
template <class Format, class Warp>
DOORBELL_HD void put_all(const Warp& warp, Job* shared) {
  Job job = *shared;
  const rdma::QueuePair<Warp, Format> queue(job.state);
  rdma::RemoteOperations<Warp, Format, rdma::NsClock> remote(queue, /*2 s*/ 2'000'000'000);
  for (u64 n = 0; n < kPuts; ++n) {
    const pattern::Identity first{/*seed*/ 7, /*address*/ n * kBytes, /*sequence*/ n};
    pattern::fill(warp, job.source, kBytes, first);
    pattern::poison(warp, job.target, kBytes);
    job.status = remote.put(warp, job.to, job.from, kBytes);
    if (job.status != rdma::Status::ok) break;
    const auto found = pattern::check(warp, job.target, kBytes, {first}).verdict;
    ++(found == pattern::Verdict::ok ? job.good : job.bad_data);
  }
  if (warp.lane() == 0) *shared = job;
}

#if defined(__CUDACC__)
constexpr auto kWho = Initiator::gpu;
template <class Format>
__global__ void kernel(Job* job) {
  put_all<Format>(GpuWarp{}, job);
}
#else
constexpr auto kWho = Initiator::cpu;
#endif

template <class Format>
bool put_through(const char* device, const char* provider) {
#if defined(__CUDACC__)
  cudaFuncAttributes loaded;  // loads the kernel now, before a model's own kernel runs, and stays
  (void)cudaFuncGetAttributes(&loaded, kernel<Format>);
  cudaStream_t stream;  // not the device: a model's kernel runs on
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
#endif
  const auto gpu = kWho == Initiator::gpu ? gpu::open(0) : nullptr;
  const auto nic = rdma::open_nic({.device = device, .provider = provider, .gpu = gpu, .initiator = kWho});
  const Region source = nic->allocate(Place::pinned, kBytes), target = nic->allocate(Place::pinned, kBytes);
  const auto from = nic->register_memory(source, rdma::access::local_write);
  const auto to = nic->register_memory(target, rdma::access::local_write | rdma::access::remote_write);
  const auto one = nic->create_queue_pair({.queue_memory = Place::pinned});
  const auto other = nic->create_queue_pair({.queue_memory = Place::pinned});
  rdma::connect(*one, *other);

  const Region memory(Place::pinned, sizeof(Job), gpu);
  Job& job = *reinterpret_cast<Job*>(memory.host());
  job = {.state = rdma::initial_state(one->memory(kWho)),
         .source = gpu ? source.device() : source.host(),
         .target = gpu ? target.device() : target.host(),
         .from = {from->iova(), from->lkey()},
         .to = {to->iova(), to->rkey()}};
#if defined(__CUDACC__)
  kernel<Format><<<1, GpuWarp::size, 0, stream>>>(reinterpret_cast<Job*>(memory.device()));
  if (cudaStreamSynchronize(stream) != cudaSuccess) throw Error("the kernel", "it did not end well");
#else
  put_all<Format>(OneLane{}, &job);
#endif
  std::printf("%s: %u puts arrived, %u with wrong bytes, status %u\n", provider, job.good + job.bad_data,
              job.bad_data, static_cast<unsigned>(job.status));
  return job.good == kPuts;
}

int main(int argc, char** argv) try {
  std::vector<const char*> providers = {"mlx5", "bnxt", "ionic", "ernic"};
  if (argc > 2) providers = {argv[2]};
  for (const char* name : providers) {
    const auto put = [&]<class F>(F) { return put_through<F>(argc > 1 ? argv[1] : "model", name); };
    if (!rdma::with_format(name, put)) return 2;
  }
  return 0;
} catch (const Error& e) {
  std::fprintf(stderr, "rdma_put: %s\n%s\n", e.what(), e.hint().c_str());
  return static_cast<int>(e.code());
}
