// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Proves that kernels run, and shows how many cycles a nanosecond has.
#include <doorbell/warp.hpp>

#include "gpu/probe.hpp"

using namespace doorbell;

/// Launch with one thread. Writes kProbeValue to `out[0]` and kProbeClocks samples to `clocks`: cycles per
/// ns are (clocks[kProbeCyclesEnd] - clocks[kProbeCyclesBegin]) over the same difference in ns.
extern "C" __global__ void doorbell_probe(unsigned* out, unsigned long long* clocks) {
  // One millisecond makes the global clock's step (1 us at worst) an error of 0.1 %.
  constexpr u64 kInterval = 1'000'000;
  // A clock that stands still must not hang the kernel. At any GPU's clock rate 2^20 rounds take more than 1
  // ms.
  constexpr u32 kRounds = 1u << 20;

  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  out[0] = kProbeValue;
  const u64 ns_begin = gpu_global_ns();
  const u64 cycles_begin = gpu_cycles();
  u64 ns_end = ns_begin;
  for (u32 i = 0; i < kRounds && ns_end - ns_begin < kInterval; ++i) ns_end = gpu_global_ns();
  const u64 cycles_end = gpu_cycles();
  clocks[kProbeNsBegin] = ns_begin;
  clocks[kProbeCyclesBegin] = cycles_begin;
  clocks[kProbeNsEnd] = ns_end;
  clocks[kProbeCyclesEnd] = cycles_end;
}
