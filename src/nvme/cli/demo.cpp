// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "nvme/bench.hpp"
#include "nvme/cli/parts.hpp"

namespace doorbell::cli {

std::vector<DemoStep> nvme_demo_steps(bool gpu) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, auto change) {
    nvme::BenchOptions b;
    b.write_io = b.read_io = 100'000;
    b.timeout_s = kDemoTimeoutS;
    b.late_after_s = kDemoLateAfterS;
    change(b);
    all.push_back(
        {std::move(title), [b](const measure::RunWatch& watch) { return nvme::run_bench(b, watch); }});
  };
  add("four queues, batches of 16", [](auto& b) {
    b.num_queues = 4;
    b.batch = 16;
  });
  add("random order, one in flight", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 20'000;
    b.random = true;
    b.substeps = true;
  });
  add("chained PRP lists", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 500;
    b.lbas_per_io = 256;
    b.batch = 4;
  });
  if (gpu) {
    for (const u32 mode : {0u, 11u})
      add(fmt::format("GPU kernel, memory mode {}", mode), [&](auto& b) {
        b.initiator = Initiator::gpu;
        b.memory_mode = mode;
        b.num_queues = 4;
        b.batch = 64;
      });
  }
  return all;
}

FaultCheck check_nvme_fault(model::Fault f, double times, const measure::RunWatch& watch) {
  nvme::BenchOptions b;
  b.write_io = b.read_io = 5'000;
  b.batch = 8;
  b.timeout_s = 0.5 * times;
  b.late_after_s = 0.1 * times;
  b.faults.probability[static_cast<u32>(f)] = f == model::Fault::removal ? 0.0005 : 0.002;
  const nvme::BenchResult r = nvme::run_bench(b, watch);
  const report::Cell& cell = r.cell();
  const u64 injected = cell.extra.at("model").at("injected").at(std::string(model::name(f))).get<u64>();
  switch (f) {
    case model::Fault::drop:
      return {injected, cell.errors.at("timeout"), "timeout"};
    case model::Fault::delay:
      return {injected, cell.errors.at("late"), "late"};
    case model::Fault::error:
      return {injected, cell.errors.at("completion"), "completion error"};
    case model::Fault::corrupt:
      return {injected, cell.verify.corrupt, "corrupt"};
    case model::Fault::misplace:
      return {injected, cell.verify.misplaced, "misplaced"};
    case model::Fault::stale:
      return {injected, cell.verify.stale, "stale"};
    case model::Fault::duplicate:
      return {injected, cell.verify.duplicated, "duplicated"};
    case model::Fault::removal:
      return {injected, cell.errors.at("removal"), "removal"};
    default:
      return {injected, r.failed ? 0 : injected, "legal: no error"};
  }
}

}  // namespace doorbell::cli
