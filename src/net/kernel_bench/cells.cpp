// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/kernel_bench/cells.hpp"

#include <fmt/format.h>

#include "measure/cpu_time.hpp"
#include "measure/tally.hpp"
#include "system/clock.hpp"

namespace doorbell::net {
namespace {

constexpr u64 kBatchesARepeat = 8;
constexpr u64 kMaxBatch = u64{1} << 16;

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
  std::vector<measure::RepeatFigures> repeats;
  for (u32 n = 0; n < o.repeats && !asked_to_stop(watch); ++n) {
    if (watch.progress)
      watch.progress(static_cast<double>(n) / o.repeats,
                     fmt::format("{} {} B from {}, workload {}", name.assembly, name.data_bytes,
                                 memory_name(name.source), net::name(name.workload)));
    double elapsed_s = 0;
    u64 windows = 0;
    const measure::CpuTime cpu;
    do {
      elapsed_s += timed(work, batch);
      windows += batch;
    } while (elapsed_s < o.duration_s && !asked_to_stop(watch));
    repeats.push_back(
        {o.seed,
         measure::metrics_of(windows * work.window_packets(), windows * work.window_bytes(), elapsed_s),
         0,
         {cpu.spent("kernels-0")}});
  }
  if (repeats.empty()) return false;

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
  const std::string title = cell.cell.dump();
  for (const std::string& w : measure::add_repeats(cell, repeats))
    result.warnings.push_back(title + ": " + w);
  // The thread only starts what the GPU does: its time is none of a packet's.
  cell.cost.cpu_ns_per_op.reset();
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
