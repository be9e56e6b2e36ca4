// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "cli/demo.hpp"

namespace doorbell::cli {

using rdma::Op;
using rdma::Provider;

DemoStep bench_step(std::string title, const rdma::BenchOptions& options) {
  return {std::move(title), [options](const measure::RunWatch& watch) {
            rdma::BenchResult r = rdma::run_bench(options, watch);
            return DemoOutcome{std::move(r.cells), r.stop_reason, std::move(r.warnings)};
          }};
}

rdma::BenchOptions faulty_bench(rdma::BenchOptions b, model::Fault fault) {
  b.iterations = 5'000;
  b.timeout_s = 0.5;
  b.late_after_s = 0.1;
  b.signal_every = 1;
  // Completions keep their order, so that one which is held back delays all behind it, and a counter does not
  // tell whose it was: only with one in flight does each late one count by itself.
  b.latency = fault == model::Fault::delay;
  b.rate = !b.latency;
  b.batch = 8;
  b.in_flight = 32;
  b.faults.probability[static_cast<u32>(fault)] = fault == model::Fault::removal ? 0.001 : 0.002;
  return b;
}

std::vector<DemoStep> rdma_steps(bool gpu) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, auto change) {
    rdma::BenchOptions b;
    change(b);
    all.push_back(bench_step(std::move(title), b));
  };
  add("WRITE on a Broadcom NIC's queues, single operations and a window of them", [](auto& b) {
    b.provider = Provider::bnxt;
    b.sizes = {256, 4 << 10, 64 << 10};
    b.iterations = 2'000;
  });
  add("READ on a ConnectX's queues", [](auto& b) {
    b.provider = Provider::mlx5;
    b.op = Op::read;
    b.sizes = {4 << 10};
    b.latency = false;
    b.iterations = 50'000;
  });
  add("fetch-and-add on a Pensando NIC's queues, every old value checked", [](auto& b) {
    b.provider = Provider::ionic;
    b.op = Op::fetch_add;
    b.sizes = {rdma::kAtomicBytes};
    b.latency = false;
    b.iterations = 50'000;
  });
  add("WRITE with immediate between two queue pairs of an ernic", [](auto& b) {
    b.provider = Provider::ernic;
    b.op = Op::write_imm;
    b.ends = rdma::Ends::pair;
    b.sizes = {1 << 10};
    b.latency = false;
    b.iterations = 50'000;
  });
  if (gpu)
    add("GPU kernel, WRITE with queues and data in GPU memory", [](auto& b) {
      b.sizes = {4 << 10};
      b.initiator = Initiator::gpu;
      b.queue_memory = b.local_memory = b.remote_memory = Place::gpu;
      b.queue_pairs = 4;
    });
  return all;
}

namespace {

u64 failed_itself(const report::Cell& cell) {
  const nlohmann::ordered_json& statuses = cell.extra["rdma"]["completion_statuses"];
  return statuses.value(rdma::status_name(static_cast<u16>(rdma::Status::remote_operation)), u64{0});
}

}  // namespace

FaultCheck check_rdma_fault(model::Fault f, const measure::RunWatch& watch) {
  rdma::BenchResult r = rdma::run_bench(faulty_bench({}, f), watch);
  report::Cell& cell = r.cells.front();
  const u64 injected = cell.extra["model"]["injected"][std::string(model::name(f))].get<u64>();
  const report::Verify& v = cell.verify;
  switch (f) {
    case model::Fault::drop:
      // Nothing implies the last one: it is waited for.
      return {injected, cell.errors.at("skipped") + (cell.errors.at("timeout") > 0 ? 1 : 0), "skipped"};
    case model::Fault::delay:
      return {injected, cell.errors.at("late"), "late"};
    case model::Fault::error:
      return {injected, failed_itself(cell), "completion error, the rest flushed"};
    case model::Fault::corrupt:
      return {injected, v.corrupt, "corrupt"};
    case model::Fault::misplace:
      return {injected, v.missing, "missing where it belongs"};
    case model::Fault::stale:
      return {injected, v.missing, "missing"};
    case model::Fault::duplicate:
      return {injected, v.duplicated, "duplicated"};
    case model::Fault::removal:
      return {injected, cell.errors.at("removal"), "removal"};
    default:
      return {injected, r.failed ? 0 : injected, "legal: no error"};
  }
}

}  // namespace doorbell::cli
