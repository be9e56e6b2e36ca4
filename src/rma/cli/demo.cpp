// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/demo.hpp"

namespace doorbell::cli {

namespace {

rma::BenchOptions faulty_bench(rma::BenchOptions b, model::Fault fault, double times) {
  b.iterations = 5'000;
  b.timeout_s = 0.5 * times;
  b.late_after_s = 0.1 * times;
  b.signal_every = 1;
  // Completions keep their order, so a completion that is held back delays all later ones, and a counter does
  // not show which operation was late. Each late operation is counted separately only if one is in flight.
  b.latency = fault == model::Fault::delay;
  b.rate = !b.latency;
  b.batch = 8;
  b.in_flight = 32;
  b.faults.probability[static_cast<u32>(fault)] = fault == model::Fault::removal ? 0.001 : 0.002;
  return b;
}

}  // namespace

DemoStep rma_demo_step(std::string title, rma::BenchOptions options) {
  options.timeout_s = kDemoTimeoutS;
  options.late_after_s = kDemoLateAfterS;
  return {std::move(title),
          [o = std::move(options)](const measure::RunWatch& watch) { return rma::run_bench(o, watch); }};
}

void run_on_gpu(rma::BenchOptions& o) {
  o.sizes = {4 << 10};
  o.initiator = Initiator::gpu;
  o.queue_memory = o.local_memory = o.remote_memory = Place::gpu;
  o.queues = 4;
}

FaultCheck check_rma_fault(rma::BenchOptions base, model::Fault fault, double times,
                           const measure::RunWatch& watch,
                           FaultCheck (*found_itself)(model::Fault, const report::Cell&, u64)) {
  const rma::BenchResult r = rma::run_bench(faulty_bench(std::move(base), fault, times), watch);
  const report::Cell& cell = r.cells.front();
  const u64 injected = cell.extra.at("model").at("injected").at(std::string(model::name(fault))).get<u64>();
  if (FaultCheck c = found_itself(fault, cell, injected); !c.found_as.empty()) return c;
  switch (fault) {
    case model::Fault::delay:
      return {injected, cell.errors.at("late"), "late"};
    case model::Fault::corrupt:
      return {injected, cell.verify.corrupt, "corrupt"};
    case model::Fault::misplace:
      return {injected, cell.verify.missing, "missing where it belongs"};
    case model::Fault::stale:
      return {injected, cell.verify.missing, "missing"};
    case model::Fault::removal:
      return {injected, cell.errors.at("removal"), "removal"};
    default:
      return {injected, r.failed ? 0 : injected, "legal: no error"};
  }
}

}  // namespace doorbell::cli
