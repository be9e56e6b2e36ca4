// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/demo.hpp"
#include "cxi/cli/parts.hpp"
#include "cxi/port.hpp"

namespace doorbell::cli {

std::vector<DemoStep> cxi_demo_steps(bool gpu) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, auto change) {
    rma::BenchOptions b = cxi::bench_of_puts();
    change(b);
    all.push_back(rma_demo_step(std::move(title), b));
  };
  add("puts, Cassini queues", [](auto& b) {
    b.sizes = {4 << 10};
    b.iterations = 5'000;
  });
  add("puts with their data inside (IDC)", [](auto& b) {
    b.sizes = {64};
    b.inline_below = 64;
    b.latency = false;
    b.iterations = 50'000;
  });
  if (gpu) add("GPU kernel, all in GPU memory", run_on_gpu);
  return all;
}

namespace {

FaultCheck found_by_cxi(model::Fault f, const report::Cell& cell, u64 injected) {
  switch (f) {
    case model::Fault::drop:
      return {injected, cell.errors.at("timeout"), "timeout: as many as were dropped"};
    case model::Fault::error:
      return {injected, cell.errors.at("completion"), "return code"};
    case model::Fault::duplicate:
      return {injected, cell.verify.duplicated > 0 ? injected : 0, "acknowledgements without an operation"};
    default:
      return {};
  }
}

}  // namespace

FaultCheck check_cxi_fault(model::Fault fault, double times, const measure::RunWatch& watch) {
  return check_rma_fault(cxi::bench_of_puts(), fault, times, watch, found_by_cxi);
}

}  // namespace doorbell::cli
