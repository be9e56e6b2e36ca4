// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A kernel that drives the queues of a path, one block of one warp a queue. What a Work is: runner.hpp; the
// kernel has a Loop and a Scratch of its own.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/memory_order.hpp>
#include <doorbell/region.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <string>

#include "loop/histogram.hpp"
#include "measure/check_memory.hpp"
#include "measure/gpu_job.hpp"
#include "measure/runner.hpp"
#include "system/clock.hpp"

namespace doorbell::measure {

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

/// Loads and launches once what a run needs: a model's DMA agent and `loops`, kernels that do nothing when
/// their job is null. The agent runs until the model ends, and two things would wait for its end: loading
/// code, and the first launch of a kernel that needs more local memory than those before.
void prepare_kernels(gpu::Gpu& gpu, std::span<const std::string> loops);

/// The bytes of one payload that a checker warp takes at a time.
inline constexpr u64 kBytesAWarp = 8192;
/// The blocks of a checker kernel. All of them run at the same time as the blocks of the loops, for each
/// waits for others: together they take half of the multiprocessors at most, and a small part of each where
/// there are more queues than that.
struct CheckerBlocks {
  u32 warps = 0;    ///< checkers of each queue
  u32 blocks = 0;   ///< of each queue
  u32 threads = 0;  ///< of a block
};
/// `asked`: warps for each of `queues` queues, as far as they fit; 0: as many as pay. Throws when the loops
/// of so many queues have no room for a checker warp each beside them.
[[nodiscard]] CheckerBlocks checker_blocks(const gpu::Info& gpu, u32 asked, u64 payload_bytes, u32 queues);

/// Nanoseconds a cycle of the GPU's clock while it is busy. Throws when a probe kernel does not run.
[[nodiscard]] double gpu_ns_per_tick(const std::shared_ptr<gpu::Gpu>& gpu, gpu::Stream stream);

/// Waits for a kernel, which ends because every loop in it has a deadline. What `watch` asks for goes to
/// `stop`; throws when the kernel then takes longer than `grace_s`.
void wait_for_kernel(gpu::Gpu& gpu, gpu::Stream stream, const Watch& watch, u32* stop, double grace_s);

/// The checker warps of a GpuRunner, a kernel beside its own.
template <class Phase, class Item>
class GpuCheckers {
 public:
  GpuCheckers(std::shared_ptr<gpu::Gpu> gpu, u32 warps, u32 window, u32 queues)
      : gpu_(std::move(gpu)),
        asked_(warps),
        capacity_(check_capacity(window)),
        queues_(queues),
        job_(1, gpu_),
        abandon_(1, gpu_),
        stream_(gpu_->create_stream()) {
    *abandon_.host() = 0;
  }
  ~GpuCheckers() {
    store_release(abandon_.host(), 1);
    if (gpu_->wait(stream_, 2'000'000'000)) gpu_->destroy(stream_);
  }
  GpuCheckers(const GpuCheckers&) = delete;
  GpuCheckers& operator=(const GpuCheckers&) = delete;

  /// Gives each item its ring.
  void prepare(const Phase& phase, u64 payload_bytes, SharedArray<Item>& items) {
    shape_ = checker_blocks(gpu_->info(), asked_, payload_bytes, queues_);
    const u64 bytes = (CheckRing::bytes(capacity_, shape_.warps) + 255) / 256 * 256;
    if (bytes * queues_ > memory_.bytes()) memory_ = Region(Place::gpu, bytes * queues_, gpu_);
    ++epoch_;
    CheckRing ring;
    ring.capacity = capacity_;
    ring.checkers = shape_.warps;
    ring.epoch = epoch_;
    ring.abandon = abandon_.device();
    ring.share(payload_bytes, kBytesAWarp, kMostTogether);
    for (u32 q = 0; q < queues_; ++q) {
      ring.words = reinterpret_cast<u64*>(memory_.device() + q * bytes);
      items.host()[q].checks = ring;
    }
    *job_.host() = {phase, items.device(), shape_.blocks};
  }
  /// Starts the kernel, after the loop's: a multiprocessor that runs blocks with little shared memory has no
  /// room for a block with much, but the other way round it has.
  void start(const std::string& kernel) {
    void* job = job_.device();
    std::array<void*, 1> args = {&job};
    gpu_->launch(gpu_->kernel(kernel), {.blocks = shape_.blocks * queues_, .threads = shape_.threads},
                 stream_, args);
  }
  /// After the loop's kernel has ended: the checkers follow it at once.
  void end() {
    if (!gpu_->wait(stream_, 5'000'000'000)) throw Error("the GPU", "its checker warps do not end");
  }

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  u32 asked_;
  CheckerBlocks shape_;
  u32 capacity_;
  u32 queues_;
  u32 epoch_ = 0;
  Region memory_;
  SharedArray<CheckJob<Phase, Item>> job_;
  SharedArray<u32> abandon_;
  gpu::Stream stream_;
};

template <CheckedWork W>
class GpuRunner final : public Runner<typename W::Phase, typename W::Item> {
  using Phase = typename W::Phase;
  using Item = typename W::Item;
  using State = typename W::State;

 public:
  /// `states`: of each queue before its first phase. `checkers`: warps a queue that make and check payloads,
  /// as checker_blocks() takes them.
  GpuRunner(std::shared_ptr<gpu::Gpu> gpu, KernelNames kernels, u32 checkers, u32 window,
            std::span<const State> states)
      : gpu_(std::move(gpu)),
        kernels_(std::move(kernels)),
        window_(window),
        stream_(gpu_->create_stream()),
        job_(1, gpu_),
        items_(states.size(), gpu_),
        states_(states.size(), gpu_),
        slots_(std::max<u64>(u64{states.size()} * W::kept_words(window), 1), gpu_),
        stats_(states.size(), gpu_),
        bins_(u64{states.size()} * histogram::kBuckets, gpu_),
        stop_(1, gpu_),
        ns_per_tick_(gpu_ns_per_tick(gpu_, stream_)),
        checks_(gpu_, checkers, window, static_cast<u32>(states.size())) {
    std::ranges::copy(states, states_.host());
    std::ranges::fill(slots_.all(), 0);
  }
  ~GpuRunner() override {
    store_release(stop_.host(), static_cast<u32>(Asked::stop));
    if (gpu_->wait(stream_, 2'000'000'000)) gpu_->destroy(stream_);
  }
  GpuRunner(const GpuRunner&) = delete;
  GpuRunner& operator=(const GpuRunner&) = delete;

  PhaseOutcome run(Phase phase, std::span<const Item> items, bool substeps, const Watch& watch) override {
    phase.stop = stop_.device();
    phase.ns_per_tick_q24 = static_cast<u64>(std::lround(ns_per_tick_ * (1 << 24)));
    *stop_.host() = 0;
    std::ranges::copy(items, items_.host());
    const bool checked = phase.verify && !phase.drain;
    if (checked) checks_.prepare(phase, W::payload_bytes(phase), items_);
    std::ranges::fill(stats_.all(), OpStats{});
    std::ranges::fill(bins_.all(), 0);
    *job_.host() = {phase,           items_.device(), states_.device(),
                    slots_.device(), stats_.device(), bins_.device()};

    const u64 cpu_before = thread_cpu_ns();
    void* job = job_.device();
    std::array<void*, 1> args = {&job};
    gpu_->launch(gpu_->kernel(substeps ? kernels_.substeps : kernels_.plain),
                 {.blocks = static_cast<u32>(items.size()),
                  .threads = static_cast<u32>(gpu_->info().warp_size),
                  .shared_bytes = static_cast<u32>(W::scratch_bytes(window_))},
                 stream_, args);
    if (checked) checks_.start(kernels_.checks);
    wait_for_kernel(*gpu_, stream_, watch, stop_.host(),
                    2 * static_cast<double>(phase.timeout_ticks) * ns_per_tick_ * 1e-9 + 5);
    if (checked) checks_.end();
    PhaseOutcome out;
    out.threads.push_back({"host", static_cast<double>(thread_cpu_ns() - cpu_before) * 1e-9, 0});
    for (std::size_t q = 0; q < stats_.all().size(); ++q)
      out.add(stats_.host()[q], {bins_.host() + q * histogram::kBuckets, histogram::kBuckets});
    return out;
  }

  u64 ticks(double seconds) const override { return ticks_of(seconds, ns_per_tick_); }
  double ns_per_tick() const override { return ns_per_tick_; }

 private:
  std::shared_ptr<gpu::Gpu> gpu_;
  KernelNames kernels_;
  u32 window_;
  gpu::Stream stream_;
  SharedArray<GpuJob<Phase, Item, State>> job_;
  SharedArray<Item> items_;
  SharedArray<State> states_;
  SharedArray<u32> slots_;
  SharedArray<OpStats> stats_;
  SharedArray<u64> bins_;
  SharedArray<u32> stop_;
  double ns_per_tick_;
  GpuCheckers<Phase, Item> checks_;  // the last member: its kernel reads the others
};

}  // namespace doorbell::measure
