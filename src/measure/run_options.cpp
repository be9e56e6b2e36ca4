// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace doorbell::measure {

namespace {
/// More than so many for each initiator thread hardly check more: on 16 cores of a machine with an H200, 4
/// were best up to payloads of 64 KiB, 8 at 1 MiB.
constexpr u32 kUsefulCheckThreads = 4;
constexpr u32 kUsefulForLarge = 8;
constexpr u64 kLarge = 256 * 1024;
}  // namespace

u32 RunOptions::verify_below() const {
  return verify_sample >= 1 ? ~0u : static_cast<u32>(std::ldexp(verify_sample, 32));
}

std::string RunOptions::verify_mode(bool verified) const {
  if (!verified) return "none";
  if (strict) return "strict";
  return verify_sample >= 1 ? "full" : fmt::format("sample={:g}", verify_sample);
}

u32 RunOptions::initiator_threads(u32 asked, u32 queues) const {
  if (initiator == Initiator::gpu) return 0;
  const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
  return std::clamp(asked != 0 ? asked : std::max(cores / 2, 1u), 1u, queues);
}

u32 RunOptions::checkers(u32 threads, u32 queues, u64 payload_bytes) const {
  if (initiator == Initiator::gpu) return check_warps;
  if (!verify) return 0;
  if (check_threads) return *check_threads;
  const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
  const u32 busy = threads + queues + 1;  // one core is for the rest of the machine
  const u32 useful = (payload_bytes < kLarge ? kUsefulCheckThreads : kUsefulForLarge) * threads;
  return cores > busy ? std::min(cores - busy, useful) : 0;
}

model::Use RunOptions::use(u32 queues, u32 threads, bool gpu_memory) const {
  return {.gpu_memory = gpu_memory,
          .queues = queues,
          .initiator_threads = threads,
          .faults = faults,
          .seed = seed,
          .late_ns = static_cast<u64>(late_after_s * 1e9)};
}

}  // namespace doorbell::measure
