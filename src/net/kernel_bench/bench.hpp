// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell net --mode kernels`: what one GPU makes of packets that have already arrived, without a network:
// the kernels that put windows together, plain copies beside them, and workloads behind both.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <string>
#include <vector>

#include "measure/bench_run.hpp"

namespace doorbell::net {

/// `duration_s` is the least time of a repeat; with 0 a repeat is `windows` windows. Of the other options the
/// seed, `verify`, `repeats`, `timeout_s` and `gpu` count.
struct KernelBenchOptions : measure::RunOptions {
  KernelBenchOptions() {
    repeats = 7;
    duration_s = 0.2;
  }
  std::vector<u64> data_bytes = {64, 256, 1024, 4096, 8000};  ///< of a packet, behind its header
  u64 window_bytes = 8'192'000;                               ///< a window is as many whole packets as fit
  u32 windows = 8;  ///< different ones, of packets and of results: together more than a GPU's cache holds
  u32 streams = 4;  ///< of the GPU, used in turn, so that starting a kernel costs no time of the GPU
  bool workloads = true;
};

/// The cells of a run, of which those of a workload without a library are left out.
[[nodiscard]] u32 kernel_cells(const KernelBenchOptions& options);
/// About how long a cell takes besides its repeats: making packets, finding how many windows a repeat has,
/// checking.
[[nodiscard]] double kernel_setup_s(const KernelBenchOptions& options);

/// Throws Error: an option out of range, no GPU (ExitCode::absent).
[[nodiscard]] measure::BenchResult run_kernel_bench(const KernelBenchOptions& options,
                                                    const measure::RunWatch& watch);
/// On a GPU that is open; `options.gpu` is only its number in the cells.
[[nodiscard]] measure::BenchResult run_kernel_bench(const KernelBenchOptions& options,
                                                    const measure::RunWatch& watch,
                                                    const std::shared_ptr<gpu::Gpu>& gpu);

}  // namespace doorbell::net
