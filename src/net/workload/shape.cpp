// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/workload/shape.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace doorbell::net {

const std::vector<std::string>& workload_names() {
  static const std::vector<std::string> names = {"none", "fft", "gemm", "gemm_fp16"};
  return names;
}

std::string_view name(WorkloadKind kind) {
  return workload_names()[static_cast<std::size_t>(kind)];
}

WorkloadKind workload_kind(std::string_view name) {
  const auto& names = workload_names();
  const auto found = std::ranges::find(names, name);
  if (found == names.end())
    throw Error(fmt::format("workload {}", name), "there is none of this name",
                fmt::format("give one of {}", fmt::join(names, ", ")));
  return static_cast<WorkloadKind>(found - names.begin());
}

u32 gemm_dim(u64 window_bytes) {
  auto root = static_cast<u64>(std::sqrt(static_cast<double>(window_bytes / 4)));
  root = std::min<u64>(root, kMaxGemmDim);
  return std::max<u32>(static_cast<u32>(root / 8 * 8), 64);
}

WorkloadShape workload_shape(WorkloadKind kind, u64 window_bytes, u32 dim) {
  WorkloadShape s;
  s.kind = kind;
  switch (kind) {
    case WorkloadKind::none:
      return s;
    case WorkloadKind::fft: {
      constexpr u64 kTransform = u64{kFftLength} * 8;
      constexpr u64 kFlop = u64{5} * kFftLength * 10;  // 5 N log2 N
      s.n = kFftLength;
      s.batch = static_cast<u32>(std::min<u64>(window_bytes / kTransform, 1u << 24));
      s.input_bytes = s.result_bytes = s.batch * kTransform;
      s.flop = s.batch * kFlop;
      if (s.batch == 0)
        throw Error("workload fft",
                    fmt::format("a window of {} bytes holds no {} complex numbers", window_bytes, kFftLength),
                    fmt::format("windows of at least {} bytes", kTransform));
      return s;
    }
    case WorkloadKind::gemm:
    case WorkloadKind::gemm_fp16:
      break;
  }
  if (dim > kMaxGemmDim)
    throw Error(fmt::format("matrices of {} rows", dim), fmt::format("they have 1 to {}", kMaxGemmDim));
  s.n = dim != 0 ? dim : gemm_dim(window_bytes);
  s.batch = 1;
  const u64 elements = u64{s.n} * s.n;
  s.input_bytes = elements * (kind == WorkloadKind::gemm_fp16 ? 2 : 4);
  s.result_bytes = elements * 4;
  s.flop = 2 * elements * s.n;
  if (s.input_bytes > window_bytes)
    throw Error(fmt::format("workload {}", name(kind)),
                fmt::format("a window of {} bytes holds no {} x {} matrix", window_bytes, s.n, s.n),
                fmt::format("windows of at least {} bytes, or smaller matrices", s.input_bytes));
  return s;
}

}  // namespace doorbell::net
