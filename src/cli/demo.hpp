// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What `doorbell demo` runs of each path: steps that are shown, and faults that must be found.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "measure/run_options.hpp"
#include "report/result.hpp"
#include "rma/bench.hpp"

namespace doorbell::cli {

struct DemoOutcome {
  std::vector<report::Cell> cells;
  std::string stop_reason = "done";
  std::vector<std::string> warnings;
};

struct DemoStep {
  std::string title;
  std::function<DemoOutcome(const measure::RunWatch&)> run;
};

/// A step that runs a bench of one-sided operations.
[[nodiscard]] DemoStep bench_step(std::string title,
                                  std::function<rma::BenchResult(const measure::RunWatch&)> run);

/// Makes a bench one that injects one kind of fault: small batches, short deadlines.
void make_faulty(rma::BenchOptions& bench, model::Fault fault);

/// One kind of fault: what the model did, and what the initiator found.
struct FaultCheck {
  u64 injected = 0;
  u64 found = 0;
  std::string found_as;
};

[[nodiscard]] std::vector<DemoStep> nvme_steps(bool gpu);
[[nodiscard]] std::vector<DemoStep> rdma_steps(bool gpu);
[[nodiscard]] std::vector<DemoStep> cxi_steps(bool gpu);
[[nodiscard]] FaultCheck check_nvme_fault(model::Fault f, const measure::RunWatch& watch);
[[nodiscard]] FaultCheck check_rdma_fault(model::Fault f, const measure::RunWatch& watch);
[[nodiscard]] FaultCheck check_cxi_fault(model::Fault f, const measure::RunWatch& watch);

}  // namespace doorbell::cli
