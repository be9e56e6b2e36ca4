// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/gpu_clock.hpp>
#include <doorbell/histogram.hpp>
#include <doorbell/region.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "measure/clock.hpp"
#include "nvme/gpu_types.hpp"
#include "nvme/runner.hpp"

namespace doorbell::nvme {

namespace {

constexpr u64 kLookNs = 20'000'000;
constexpr double kCalibrationLimitS = 5;

/// An array in pinned memory that host and kernel share.
template <class T>
class SharedArray {
 public:
  SharedArray(u64 n, const std::shared_ptr<gpu::Gpu>& gpu)
      : region_(Place::pinned, n * sizeof(T), gpu), size_(n) {
    std::uninitialized_default_construct_n(host(), n);
  }
  [[nodiscard]] T* host() { return reinterpret_cast<T*>(region_.host()); }
  [[nodiscard]] T* device() { return reinterpret_cast<T*>(region_.device()); }
  [[nodiscard]] std::span<T> all() { return {host(), size_}; }

 private:
  Region region_;
  u64 size_;
};

class GpuRunner final : public Runner {
 public:
  GpuRunner(std::shared_ptr<gpu::Gpu> gpu, u32 window, u32 queues)
      : gpu_(std::move(gpu)),
        window_(window),
        stream_(gpu_->create_stream()),
        job_(1, gpu_),
        queues_(queues, gpu_),
        states_(queues, gpu_),
        slots_(u64{queues} * window, gpu_),
        stats_(queues, gpu_),
        bins_(u64{queues} * histogram::kBuckets, gpu_),
        stop_(1, gpu_),
        ns_per_tick_(calibrate()) {
    std::ranges::fill(slots_.all(), 0);
  }
  ~GpuRunner() override {
    store_release(stop_.host(), 1);
    if (gpu_->wait(stream_, 2'000'000'000)) gpu_->destroy(stream_);
  }

  PhaseOutcome run(IoPhase phase, std::span<const IoQueue> queues, bool substeps,
                   const Watch& watch) override {
    phase.stop = stop_.device();
    phase.ns_per_tick_q24 = static_cast<u64>(std::lround(ns_per_tick_ * (1 << 24)));
    *stop_.host() = 0;
    for (std::size_t q = 0; q < queues.size(); ++q) {
      queues_.host()[q] = queues[q];
      if (!started_) states_.host()[q].memory = queues[q].memory;
      stats_.host()[q] = IoStats{};
    }
    started_ = true;
    std::ranges::fill(bins_.all(), 0);
    *job_.host() = {phase,           queues_.device(), states_.device(),
                    slots_.device(), stats_.device(),  bins_.device()};

    const u64 cpu_before = thread_cpu_ns();
    void* job = job_.device();
    std::array<void*, 1> args = {&job};
    const gpu::Kernel kernel = gpu_->kernel(substeps ? "doorbell_nvme_io_substeps" : "doorbell_nvme_io");
    gpu_->launch(kernel,
                 {.blocks = static_cast<u32>(queues.size()),
                  .threads = static_cast<u32>(gpu_->info().warp_size),
                  .shared_bytes = static_cast<u32>(IoScratch::bytes(window_, histogram::kBuckets))},
                 stream_, args);
    wait(phase, watch);
    PhaseOutcome out;
    out.threads.push_back({"host", static_cast<double>(thread_cpu_ns() - cpu_before) * 1e-9, 0});
    collect(out);
    return out;
  }

  u64 ticks(double seconds) const override { return static_cast<u64>(seconds * 1e9 / ns_per_tick_); }
  double ns_per_tick() const override { return ns_per_tick_; }

 private:
  void wait(const IoPhase& phase, const Watch& watch) {
    // The kernel ends by itself: every loop in it has a deadline. This one is for a kernel that does
    // not keep its own.
    const double grace_s = 2 * static_cast<double>(phase.timeout_ticks) * ns_per_tick_ * 1e-9 + 5;
    u64 asked_at = 0;
    while (!gpu_->wait(stream_, kLookNs)) {
      if (watch && watch(0) && asked_at == 0) {
        store_release(stop_.host(), 1);
        asked_at = wall_ns();
      }
      if (asked_at != 0 && static_cast<double>(wall_ns() - asked_at) * 1e-9 > grace_s)
        throw Error("the I/O kernel", fmt::format("it did not stop within {:.0f} s of being asked", grace_s),
                    {}, ExitCode::data);
    }
  }

  double calibrate() {
    SharedArray<u32> value(1, gpu_);
    SharedArray<u64> clocks(kProbeClocks, gpu_);
    void* out = value.device();
    void* samples = clocks.device();
    std::array<void*, 2> args = {&out, &samples};
    // A GPU comes out of idle at a low frequency: the last of several probes sees it awake.
    for (int i = 0; i < 20; ++i) {
      *value.host() = 0;
      gpu_->launch(gpu_->kernel("doorbell_probe"), {.blocks = 1, .threads = 1, .shared_bytes = 0}, stream_,
                   args);
      if (!gpu_->wait(stream_, static_cast<u64>(kCalibrationLimitS * 1e9)) || *value.host() != kProbeValue)
        throw Error(fmt::format("GPU {}", gpu_->info().index), "a probe kernel did not run",
                    "doorbell doctor", ExitCode::usage);
    }
    const u64* c = clocks.host();
    return static_cast<double>(c[kProbeNsEnd] - c[kProbeNsBegin]) /
           static_cast<double>(c[kProbeCyclesEnd] - c[kProbeCyclesBegin]);
  }

  void collect(PhaseOutcome& out) {
    u64 begin = ~u64{0}, end = 0;
    for (std::size_t q = 0; q < stats_.all().size(); ++q) {
      const IoStats& s = stats_.host()[q];
      out.queues.push_back(s);
      out.latency.merge({bins_.host() + q * histogram::kBuckets, histogram::kBuckets}, s.min_ns, s.max_ns,
                        s.sum_ns, s.sum_sq_ns);
      if (s.posted == 0) continue;
      begin = std::min(begin, s.begin_ns);
      end = std::max(end, s.end_ns);
    }
    if (end > begin) out.elapsed_s = static_cast<double>(end - begin) * 1e-9;
  }

  std::shared_ptr<gpu::Gpu> gpu_;
  u32 window_;
  gpu::Stream stream_;
  SharedArray<GpuJob> job_;
  SharedArray<IoQueue> queues_;
  SharedArray<QueuePairState> states_;
  SharedArray<u32> slots_;
  SharedArray<IoStats> stats_;
  SharedArray<u64> bins_;
  SharedArray<u32> stop_;
  double ns_per_tick_;
  bool started_ = false;
};

}  // namespace

std::unique_ptr<Runner> gpu_runner(std::shared_ptr<gpu::Gpu> gpu, u32 window, u32 queues) {
  return std::make_unique<GpuRunner>(std::move(gpu), window, queues);
}

}  // namespace doorbell::nvme
