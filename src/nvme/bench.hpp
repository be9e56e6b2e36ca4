// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bench of `doorbell nvme`: write, barrier, read back and verify, as often as asked.
#pragma once

#include <doorbell/nvme/controller.hpp>

#include <string>

#include "measure/bench_run.hpp"

namespace doorbell::nvme {

/// How a file is driven through the kernel.
struct FileOptions {
  bool sync = false;  ///< pread and pwrite instead of io_uring
  bool direct = true;
  bool fixed_buffers = true;
  bool fixed_files = true;
  bool sqpoll = false;
  bool iopoll = false;
  u64 create_bytes = 0;  ///< make the file this large if it does not exist
};

struct BenchOptions : measure::RunOptions {
  std::string controller = "model";
  std::string file;  ///< not empty: this file or block device, through the kernel, instead of a controller
  FileOptions file_options;
  u32 nsid = 1;
  u32 memory_mode = 0;                  ///< bits: 1 SQ, 2 CQ, 8 data in GPU memory
  Place host_memory = Place::pageable;  ///< of data that is not in GPU memory
  u64 write_io = 0;
  u64 read_io = 0;
  bool default_counts = false;  ///< the counts are defaults: leave writes out where they need permission
  u32 batch = 1;
  u32 in_flight = 0;  ///< on one queue; 0: chosen from batch and queue length
  u32 queue_length = 1024;
  bool default_queue_length = false;  ///< it is a default: shorter where the controller takes less
  u32 num_queues = 1;
  u32 threads = 0;  ///< CPU initiator threads; 0: as the cores allow
  u32 lbas_per_io = 1;
  u64 io_bytes = 0;  ///< in place of lbas_per_io, if it is not 0: a multiple of the logical block
  u64 base_lba = 0;
  bool random = false;
  bool infinite = false;
  bool less_timing = false;
  bool substeps = false;
  u64 lfsr_seed = 1;
  bool shadow_doorbells = false;
  bool allow_write = false;
};

using measure::BenchResult;  ///< one cell

/// Runs it. Throws doorbell::Error for what cannot be set up; nothing has been written then.
[[nodiscard]] BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);
/// Throws Error for options that no controller could run together.
void check(const BenchOptions& options);

}  // namespace doorbell::nvme
