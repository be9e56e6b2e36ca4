// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/kernel_bench/bench.hpp"

#include <fmt/format.h>

#include <iterator>
#include <span>

#include "net/kernel_bench/cells.hpp"
#include "net/kernel_bench/work.hpp"
#include "net/settings.hpp"

namespace doorbell::net {
namespace {

constexpr u64 kWorkloadDataBytes = 8000;
constexpr u64 kMaxKernelWindowBytes = u64{1} << 30;

void check(const KernelBenchOptions& o) {
  const auto range = [](const std::string& what, u64 value, u64 low, u64 high) {
    if (value < low || value > high) throw Error(what, fmt::format("{} is not in {}..{}", value, low, high));
  };
  range("the window's bytes", o.window_bytes, kWorkloadDataBytes, kMaxKernelWindowBytes);
  range("the number of windows", o.windows, 1, 1024);
  range("the number of the GPU's streams", o.streams, 1, 64);
  range(setting::repeats, o.repeats, 1, 1'000'000);
  if (o.data_bytes.empty())
    throw Error("a packet's data bytes", "there must be at least one number of data bytes");
  for (const u64 bytes : o.data_bytes) {
    range("a packet's data bytes", bytes, 16, o.window_bytes);
    // Whole vectors, as the headers' reader needs them, and no more packets than a list may have.
    if (bytes % 8 != 0) throw Error("a packet's data bytes", fmt::format("{} is no multiple of 8", bytes));
    range("the packets of a window", o.window_bytes / bytes, 1, kMaxWindowPackets);
  }
}

constexpr Place kSources[] = {Place::gpu, Place::pinned};
constexpr WorkloadKind kWorkloads[] = {WorkloadKind::none, WorkloadKind::fft, WorkloadKind::gemm,
                                       WorkloadKind::gemm_fp16};
/// The memory of the list that a kernel reads. The list is the smaller part: where packets come from the
/// host's memory, so does it.
std::span<const Place> lists_of(Place source) {
  static constexpr Place kLists[] = {Place::pinned, Place::gpu};
  return std::span(kLists).first(source == Place::pinned ? 1 : 2);
}

class KernelBench {
 public:
  KernelBench(const KernelBenchOptions& options, const measure::RunWatch& watch,
              std::shared_ptr<gpu::Gpu> gpu)
      : o_(options), watch_(watch), gpu_(std::move(gpu)) {}

  measure::BenchResult run() {
    for (const u64 bytes : o_.data_bytes)
      for (const Place source : kSources) kernels(static_cast<u32>(bytes), source);
    for (const Place source : kSources)
      if (going()) cell(copies(o_, gpu_, source), {"copy", source, {}, o_.window_bytes, WorkloadKind::none});
    if (o_.workloads)
      for (const bool gathers : {true, false}) workloads(gathers);
    if (!going()) result_.stopped(StopReason::requested);
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool going() const { return watch_.stop == nullptr || !watch_.stop->requested(); }
  [[nodiscard]] StoredShape shape(u64 data_bytes, Fill fill) const {
    return {static_cast<u32>(data_bytes), static_cast<u32>(o_.window_bytes / data_bytes), o_.windows, fill,
            o_.seed};
  }

  /// False when the run was stopped before the cell's end.
  bool cell(const std::unique_ptr<KernelWork>& work, const KernelCellName& name) {
    return measure_cell(o_, watch_, *gpu_, name, *work, result_);
  }

  void kernels(u32 data_bytes, Place source) {
    if (!going()) return;
    const StoredPackets packets(shape(data_bytes, Fill::bytes), StoredPackets::Order::scattered, source,
                                gpu_);
    for (const bool by_headers : {false, true})
      for (const Place list : lists_of(source)) {
        if (!going()) return;
        cell(by_headers ? placing(o_, packets, list, gpu_) : gathering(o_, packets, list, gpu_),
             {by_headers ? "place" : "gather", source, list, data_bytes, WorkloadKind::none});
      }
  }

  /// Windows of pinned packets by one way, first without a workload, then with each.
  void workloads(bool gathers) {
    double alone = 0;
    for (const WorkloadKind kind : kWorkloads) {
      if (!going()) return;
      const Fill fill = kind == WorkloadKind::gemm_fp16 ? Fill::float16 : Fill::float32;
      const StoredPackets packets(shape(kWorkloadDataBytes, fill),
                                  gathers ? StoredPackets::Order::scattered : StoredPackets::Order::windows,
                                  Place::pinned, gpu_);
      std::unique_ptr<KernelWork> work;
      try {
        work = computing(o_, packets, gathers, kind, gpu_);
      } catch (const Error& e) {
        if (e.code() != ExitCode::absent) throw;
        result_.warnings.push_back(
            fmt::format("no cell with workload {}: {}: {}", net::name(kind), e.what(), e.hint()));
        continue;
      }
      if (!cell(work,
                {gathers ? "gather" : "copy", Place::pinned,
                 gathers ? std::optional(Place::pinned) : std::nullopt, kWorkloadDataBytes, kind, true}))
        return;
      report::Cell& c = result_.cells.back();
      if (kind == WorkloadKind::none) alone = c.metrics.bytes_per_s;
      else if (alone > 0) c.extra["net"]["share_of_no_workload"] = c.metrics.bytes_per_s / alone;
    }
  }

  const KernelBenchOptions& o_;
  const measure::RunWatch& watch_;
  std::shared_ptr<gpu::Gpu> gpu_;
  measure::BenchResult result_;
};

}  // namespace

u32 kernel_cells(const KernelBenchOptions& o) {
  std::size_t lists = 0;
  for (const Place source : kSources) lists += lists_of(source).size();
  const std::size_t computing = o.workloads ? 2 * std::size(kWorkloads) : 0;
  return static_cast<u32>(2 * lists * o.data_bytes.size() + std::size(kSources) + computing);
}

double kernel_setup_s(const KernelBenchOptions& o) {
  constexpr double kPacketsAndChecksS = 0.4, kWarmUp = 0.25;
  return kPacketsAndChecksS + kWarmUp * o.duration_s;
}

measure::BenchResult run_kernel_bench(const KernelBenchOptions& options, const measure::RunWatch& watch,
                                      const std::shared_ptr<gpu::Gpu>& gpu) {
  check(options);
  return KernelBench(options, watch, gpu).run();
}

measure::BenchResult run_kernel_bench(const KernelBenchOptions& options, const measure::RunWatch& watch) {
  check(options);
  return run_kernel_bench(options, watch, gpu::open(options.gpu));
}

}  // namespace doorbell::net
