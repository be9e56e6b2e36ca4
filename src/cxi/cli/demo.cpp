// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/demo.hpp"
#include "cxi/rma_device.hpp"

namespace doorbell::cli {

std::vector<DemoStep> cxi_steps(bool gpu) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, auto change) {
    rdma::BenchOptions b = cxi::rma_bench();
    change(b);
    all.push_back(bench_step(std::move(title), b));
  };
  add("puts on a Cassini's command queues, single operations and a window of them", [](auto& b) {
    b.sizes = {64, 4 << 10, 512 << 10};
    b.iterations = 1'000;
  });
  add("small puts with the data in the command (IDC)", [](auto& b) {
    b.sizes = {64};
    b.inline_below = 64;
    b.latency = false;
    b.iterations = 50'000;
  });
  if (gpu)
    add("GPU kernel, puts with queues and data in GPU memory", [](auto& b) {
      b.sizes = {4 << 10};
      b.initiator = Initiator::gpu;
      b.queue_memory = b.local_memory = b.remote_memory = Place::gpu;
      b.queue_pairs = 4;
    });
  return all;
}

FaultCheck check_cxi_fault(model::Fault f, const measure::RunWatch& watch) {
  rdma::BenchResult r = rdma::run_bench(faulty_bench(cxi::rma_bench(), f), watch);
  report::Cell& cell = r.cells.front();
  const u64 injected = cell.extra["model"]["injected"][std::string(model::name(f))].get<u64>();
  const report::Verify& v = cell.verify;
  switch (f) {
    case model::Fault::drop:
      return {injected, cell.errors.at("timeout"), "timeout: as many wait as were lost"};
    case model::Fault::delay:
      return {injected, cell.errors.at("late"), "late"};
    case model::Fault::error:
      return {injected, cell.errors.at("completion"), "return code"};
    case model::Fault::corrupt:
      return {injected, v.corrupt, "corrupt"};
    case model::Fault::misplace:
      return {injected, v.missing, "missing where it belongs"};
    case model::Fault::stale:
      return {injected, v.missing, "missing"};
    case model::Fault::duplicate:
      return {injected, v.duplicated > 0 ? injected : 0, "acknowledgements without an operation"};
    case model::Fault::removal:
      return {injected, cell.errors.at("removal"), "removal"};
    default:
      return {injected, r.failed ? 0 : injected, "legal: no error"};
  }
}

}  // namespace doorbell::cli
