// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/gpu_runner.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "gpu/code_objects.hpp"
#include "gpu/probe.hpp"

namespace doorbell::measure {

namespace {
constexpr u64 kLookNs = 20'000'000;
constexpr double kCalibrationLimitS = 5;
constexpr u64 kFirstLaunchNs = 10'000'000'000;
/// Loops that a multiprocessor has room for with a checker warp each: 65,536 registers, of which a loop's
/// warp takes up to 255 a thread and a checker's 128, in units of 256 a warp.
constexpr u32 kLoopsWithCheckers = 65536 / ((256 + 128) * 32);
}  // namespace

void prepare_kernels(gpu::Gpu& gpu, std::span<const std::string> loops) {
  // Of such a GPU the copy engine serves models, and its data is made and checked in host memory.
  if (loops.empty() && !gpu::has_kernels(gpu.info().runtime)) return;
  for (const char* name : {"doorbell_probe", "doorbell_dma_agent"}) (void)gpu.kernel(name);
  const gpu::Stream stream = gpu.create_stream();
  for (const std::string& name : loops) {
    void* no_job = nullptr;
    std::array<void*, 1> args = {&no_job};
    gpu.launch(gpu.kernel(name),
               {.blocks = 1, .threads = static_cast<u32>(gpu.info().warp_size), .shared_bytes = 0}, stream,
               args);
    if (!gpu.wait(stream, kFirstLaunchNs))
      throw Error("kernel " + name, "it did not start", "doorbell doctor");
  }
  gpu.destroy(stream);
}

CheckerBlocks checker_blocks(const gpu::Info& gpu, u32 asked, u64 payload_bytes, u32 queues) {
  // Small payloads are bounded by the loop's warp. Large ones need so many loads under way that the latency
  // of host memory is hidden.
  constexpr u32 kForSmall = 16, kForLarge = 64;
  constexpr u64 kSmall = 4096;
  const u32 wanted = asked != 0 ? asked : payload_bytes <= kSmall ? kForSmall : kForLarge;
  const auto lanes = static_cast<u32>(gpu.warp_size);
  const u32 together = static_cast<u32>(std::max(gpu.multiprocessors / 2, 1));
  const u32 most = kLoopsWithCheckers * static_cast<u32>(std::max(gpu.multiprocessors, 1));
  if (queues > most)
    throw Error(fmt::format("GPU {}", gpu.index),
                fmt::format("{} queues are too many for a kernel that checks their data beside them: at most "
                            "{}, or unchecked",
                            queues, most));
  CheckerBlocks b;
  b.threads = kCheckThreads;
  if (queues > together) b.threads = std::max(kCheckThreads * together / queues / lanes, 1u) * lanes;
  const u32 warps_a_block = b.threads / lanes;
  b.blocks = std::clamp((wanted + warps_a_block - 1) / warps_a_block, 1u, std::max(together / queues, 1u));
  b.warps = std::min(wanted, b.blocks * warps_a_block);
  b.threads = std::min(b.threads, (b.warps + b.blocks - 1) / b.blocks * lanes);
  return b;
}

double gpu_ns_per_tick(const std::shared_ptr<gpu::Gpu>& gpu, gpu::Stream stream) {
  SharedArray<u32> value(1, gpu);
  SharedArray<u64> clocks(kProbeClocks, gpu);
  void* out = value.device();
  void* samples = clocks.device();
  std::array<void*, 2> args = {&out, &samples};
  // A GPU comes out of idle at a low frequency: the last of several probes sees it awake.
  for (int i = 0; i < 20; ++i) {
    *value.host() = 0;
    gpu->launch(gpu->kernel("doorbell_probe"), {.blocks = 1, .threads = 1, .shared_bytes = 0}, stream, args);
    if (!gpu->wait(stream, static_cast<u64>(kCalibrationLimitS * 1e9)) || *value.host() != kProbeValue)
      throw Error(fmt::format("GPU {}", gpu->info().index), "a probe kernel did not run", "doorbell doctor",
                  ExitCode::usage);
  }
  const u64* c = clocks.host();
  return static_cast<double>(c[kProbeNsEnd] - c[kProbeNsBegin]) /
         static_cast<double>(c[kProbeCyclesEnd] - c[kProbeCyclesBegin]);
}

void wait_for_kernel(gpu::Gpu& gpu, gpu::Stream stream, const Watch& watch, u32* stop, double grace_s) {
  Asked asked = Asked::nothing;
  u64 asked_at = 0;
  while (!gpu.wait(stream, kLookNs)) {
    if (const Asked now = watch ? watch(0) : Asked::nothing; now > asked) {
      store_release(stop, static_cast<u32>(now));
      if (asked == Asked::nothing) asked_at = wall_ns();
      asked = now;
    }
    if (asked_at != 0 && static_cast<double>(wall_ns() - asked_at) * 1e-9 > grace_s)
      throw Error("the I/O kernel", fmt::format("it did not stop within {:.0f} s of being asked", grace_s),
                  {}, ExitCode::data);
  }
}

}  // namespace doorbell::measure
