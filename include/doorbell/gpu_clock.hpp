// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two clocks of a GPU kernel: nanoseconds that all of a GPU's processors share, and cycles of the
// processor that runs the caller. Device code only.
#pragma once

#include <doorbell/config.hpp>

#if defined(__HIPCC__)
#include <hip/hip_runtime.h>
#endif

namespace doorbell {

/// The value that the kernel doorbell_probe writes to prove that it ran.
inline constexpr u32 kProbeValue = 0xD00B'E110u;

/// The samples that doorbell_probe takes, in the order of its `clocks` argument.
enum ProbeClock : u32 { kProbeNsBegin, kProbeCyclesBegin, kProbeNsEnd, kProbeCyclesEnd, kProbeClocks };

#if defined(__CUDACC__) || defined(__HIPCC__)

/// Nanoseconds of the clock that every processor of one GPU shares. It ticks in steps (32 ns on an
/// H100, up to 1 us on older GPUs), and its origin is arbitrary: only differences mean something.
DOORBELL_DEVICE inline u64 gpu_global_ns() {
#if defined(DOORBELL_ON_CUDA)
  u64 ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
#elif defined(DOORBELL_ON_HIP)
  // The reference clock of gfx9 and gfx10.3 parts runs at 100 MHz: 10 ns a tick.
  return static_cast<u64>(wall_clock64()) * 10;
#else
  return 0;
#endif
}

/// Cycles of the calling processor's own clock: fine-grained, but two processors' values do not
/// compare and the rate follows the GPU's frequency.
DOORBELL_DEVICE inline u64 gpu_cycles() {
#if defined(DOORBELL_ON_GPU)
  return static_cast<u64>(clock64());
#else
  return 0;
#endif
}

/// The Clock of IoLoop and OpLoop in a kernel.
struct GpuClock {
  static DOORBELL_DEVICE u64 now() { return gpu_cycles(); }
  static DOORBELL_DEVICE u64 wall_ns() { return gpu_global_ns(); }
};

#endif

}  // namespace doorbell
