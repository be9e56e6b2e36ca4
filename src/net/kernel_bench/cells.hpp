// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One cell of the kernels' bench: warm-up, repeats, verification.
#pragma once

#include <optional>

#include "net/kernel_bench/work.hpp"

namespace doorbell::net {

struct KernelCellName {
  const char* assembly;  ///< "gather", "place", "copy"
  Place source;
  std::optional<Place> list;
  u64 data_bytes;
  WorkloadKind workload;
  bool consumed = false;  ///< windows go through the stages of a receiver, with or without a workload
};

/// Appends the cell; false when the run was stopped before its first repeat.
bool measure_cell(const KernelBenchOptions& options, const measure::RunWatch& watch, const gpu::Gpu& gpu,
                  const KernelCellName& name, KernelWork& work, measure::BenchResult& result);

}  // namespace doorbell::net
