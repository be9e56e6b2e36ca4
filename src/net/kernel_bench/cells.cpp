// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/kernel_bench/cells.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "measure/cpu_time.hpp"
#include "measure/tally.hpp"
#include "system/clock.hpp"

namespace doorbell::net {
namespace {

constexpr u64 kBatchesARepeat = 8;
constexpr u64 kMaxBatch = u64{1} << 16;

struct Sample {
  u64 windows = 0;
  double elapsed_s = 0;
  measure::ThreadCost cost;
};

const char* memory_name(Place place) {
  return place == Place::gpu ? "gpu" : "pinned";
}

double timed(KernelWork& work, u64 windows) {
  const u64 begin = wall_ns();
  work.run(windows);
  return static_cast<double>(wall_ns() - begin) * 1e-9;
}

bool asked_to_stop(const measure::RunWatch& watch) {
  return watch.stop != nullptr && watch.stop->requested();
}

/// Warms up, and finds how many windows in a row last an eighth of a repeat: the wait at the end of each
/// batch is then a small part of it.
u64 warm_up(const KernelBenchOptions& o, const measure::RunWatch& watch, KernelWork& work) {
  u64 batch = o.windows;
  while (timed(work, batch) * kBatchesARepeat < o.duration_s && batch < kMaxBatch && !asked_to_stop(watch))
    batch *= 2;
  return batch;
}

report::Metrics metrics_of(const KernelWork& work, const Sample& s) {
  report::Metrics m;
  m.ops = s.windows * work.window_packets();
  m.bytes = s.windows * work.window_bytes();
  m.elapsed_s = s.elapsed_s;
  if (s.elapsed_s > 0) {
    m.ops_per_s = static_cast<double>(m.ops) / s.elapsed_s;
    m.bytes_per_s = static_cast<double>(m.bytes) / s.elapsed_s;
  }
  return m;
}

void verify(const KernelBenchOptions& o, KernelWork& work, report::Cell& cell) {
  cell.verify.mode = o.verify ? "full" : "none";
  cell.errors = {{"identity", 0}};
  if (!o.verify) return;
  const KernelWork::Checked c = work.verify();
  cell.verify.checked = c.packets + c.results;
  cell.verify.checked_bytes = c.packets * (work.window_bytes() / work.window_packets());
  cell.verify.corrupt = c.wrong + c.wrong_results;
  cell.errors["identity"] = c.uncounted;
}

}  // namespace

bool measure_cell(const KernelBenchOptions& o, const measure::RunWatch& watch, const gpu::Gpu& gpu,
                  const KernelCellName& name, KernelWork& work, measure::BenchResult& result) {
  const u64 batch = warm_up(o, watch, work);
  std::vector<Sample> samples;
  for (u32 n = 0; n < o.repeats && !asked_to_stop(watch); ++n) {
    if (watch.progress)
      watch.progress(static_cast<double>(n) / o.repeats,
                     fmt::format("{} {} B from {}, workload {}", name.assembly, name.data_bytes,
                                 memory_name(name.source), net::name(name.workload)));
    Sample s;
    const measure::CpuTime cpu;
    do {
      s.elapsed_s += timed(work, batch);
      s.windows += batch;
    } while (s.elapsed_s < o.duration_s && !asked_to_stop(watch));
    s.cost = cpu.spent("kernels-0");
    samples.push_back(std::move(s));
  }
  if (samples.empty()) return false;

  report::Cell cell;
  cell.path = "net";
  cell.cell = {{"mode", "kernels"},
               {"assembly", name.assembly},
               {"source", memory_name(name.source)},
               {"data_bytes", name.data_bytes},
               {"workload", net::name(name.workload)}};
  if (name.list) cell.cell["list"] = memory_name(*name.list);
  if (name.consumed) cell.cell["stages"] = "receiver";
  cell.initiator_kind = "gpu";
  cell.gpu = o.gpu;
  cell.device_kind = "hardware";
  cell.device_name = gpu.info().name;
  for (const Sample& s : samples) cell.repeats.push_back(measure::repeat_of(o.seed, metrics_of(work, s), 0));
  std::ranges::sort(samples, {}, [&](const Sample& s) { return metrics_of(work, s).ops_per_s; });
  const Sample& median = samples[(samples.size() - 1) / 2];
  cell.metrics = metrics_of(work, median);
  cell.cost.cpu_user_s = median.cost.user_s;
  cell.cost.cpu_system_s = median.cost.system_s;
  cell.cost.threads.push_back({median.cost.name, median.cost.user_s + median.cost.system_s});
  const std::string title = cell.cell.dump();
  for (const std::string& w : measure::summarise_repeats(cell)) result.warnings.push_back(title + ": " + w);
  verify(o, work, cell);
  cell.extra["net"] = {{"assembled_gbps", cell.metrics.bytes_per_s * 8e-9},
                       {"window_bytes", work.window_bytes()},
                       {"window_packets", work.window_packets()},
                       {"window_us", cell.metrics.bytes_per_s > 0 ? static_cast<double>(work.window_bytes()) /
                                                                        cell.metrics.bytes_per_s * 1e6
                                                                  : 0},
                       {"windows", o.windows},
                       {"batch_windows", batch}};
  const nlohmann::ordered_json facts = work.facts();
  for (const auto& [key, value] : facts.items()) cell.extra["net"][key] = value;
  result.add(std::move(cell));
  return true;
}

}  // namespace doorbell::net
