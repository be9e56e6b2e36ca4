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
    change(b);
    all.push_back(
        {std::move(title), [b](const measure::RunWatch& watch) {
           nvme::BenchResult r = nvme::run_bench(b, watch);
           return BenchOutcome{{std::move(r.cell)}, r.stop_reason, r.failed, {}, std::move(r.warnings)};
         }});
  };
  add("512 B blocks, four queues", [](auto& b) {
    b.num_queues = 4;
    b.batch = 16;
  });
  add("4 KiB blocks, random order, one command in flight", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 20'000;
    b.random = true;
    b.substeps = true;
  });
  add("1 MiB I/Os over chained PRP lists", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 500;
    b.lbas_per_io = 256;
    b.batch = 4;
  });
  add("the queues alone (null media)", [](auto& b) {
    b.controller = "model:media=null";
    b.write_io = 0;
    b.read_io = 2'000'000;
    b.batch = 64;
    b.verify = false;
    b.less_timing = true;
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

FaultCheck check_nvme_fault(model::Fault f, const measure::RunWatch& watch) {
  nvme::BenchOptions b;
  b.write_io = b.read_io = 5'000;
  b.batch = 8;
  b.timeout_s = 0.5;
  b.late_after_s = 0.1;
  b.faults.probability[static_cast<u32>(f)] = f == model::Fault::removal ? 0.0005 : 0.002;
  const nvme::BenchResult r = nvme::run_bench(b, watch);
  FaultCheck c;
  c.injected = r.cell.extra["model"]["injected"][std::string(model::name(f))].get<u64>();
  const report::Verify& v = r.cell.verify;
  const auto found = [&](const char* name, u64 n) {
    c.found_as = name;
    c.found = n;
  };
  switch (f) {
    case model::Fault::drop:
      found("timeout", r.cell.errors.at("timeout"));
      break;
    case model::Fault::delay:
      found("late", r.cell.errors.at("late"));
      break;
    case model::Fault::error:
      found("completion error", r.cell.errors.at("completion"));
      break;
    case model::Fault::corrupt:
      found("corrupt", v.corrupt);
      break;
    case model::Fault::misplace:
      found("misplaced", v.misplaced);
      break;
    case model::Fault::stale:
      found("stale", v.stale);
      break;
    case model::Fault::duplicate:
      found("duplicated", v.duplicated);
      break;
    case model::Fault::removal:
      found("removal", r.cell.errors.at("removal"));
      break;
    default:
      found("legal: no error", r.failed ? 0 : c.injected);
  }
  return c;
}

}  // namespace doorbell::cli
