// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The computation that a workload does on a window, and how much of it.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace doorbell::net {

enum class WorkloadKind { none, fft, gemm, gemm_fp16 };
[[nodiscard]] std::string_view name(WorkloadKind kind);
/// In the order of the kinds.
[[nodiscard]] const std::vector<std::string>& workload_names();
/// Throws Error: no such workload.
[[nodiscard]] WorkloadKind workload_kind(std::string_view name);

inline constexpr u32 kFftLength = 1024;
inline constexpr u32 kMaxGemmDim = 16384;

struct WorkloadShape {
  WorkloadKind kind = WorkloadKind::none;
  u32 n = 0;            ///< of gemm: the matrices are n x n; of fft: kFftLength
  u32 batch = 0;        ///< transforms in a window; 1 for gemm
  u64 input_bytes = 0;  ///< of a window that are used
  u64 result_bytes = 0;
  u64 flop = 0;  ///< of one run
};

/// n for a window of so many bytes: floor(sqrt(bytes / 4) / 8) * 8, at least 64.
[[nodiscard]] u32 gemm_dim(u64 window_bytes);
/// `dim`: 0 for gemm_dim(window_bytes). Throws Error: out of range, or the window is too small.
[[nodiscard]] WorkloadShape workload_shape(WorkloadKind kind, u64 window_bytes, u32 dim = 0);

}  // namespace doorbell::net
