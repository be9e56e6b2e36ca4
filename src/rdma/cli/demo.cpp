// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/demo.hpp"
#include "rdma/bench.hpp"
#include "rdma/cli/parts.hpp"

namespace doorbell::cli {

using rdma::Op;
using rdma::Provider;

std::vector<DemoStep> rdma_demo_steps(bool gpu) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, auto change) {
    rdma::BenchOptions b;
    change(b);
    all.push_back(rma_demo_step(std::move(title), rdma::bench_of(b)));
  };
  add("WRITE, Broadcom queues", [](auto& b) {
    b.provider = Provider::bnxt;
    b.sizes = {4 << 10};
    b.iterations = 5'000;
  });
  add("READ, ConnectX queues", [](auto& b) {
    b.provider = Provider::mlx5;
    b.op = Op::read;
    b.sizes = {4 << 10};
    b.latency = false;
    b.iterations = 50'000;
  });
  add("fetch-and-add, Pensando queues", [](auto& b) {
    b.provider = Provider::ionic;
    b.op = Op::fetch_add;
    b.sizes = {rdma::kAtomicBytes};
    b.latency = false;
    b.iterations = 50'000;
  });
  add("WRITE with immediate, ernic", [](auto& b) {
    b.provider = Provider::ernic;
    b.op = Op::write_imm;
    b.ends = rdma::Ends::pair;
    b.sizes = {1 << 10};
    b.latency = false;
    b.iterations = 50'000;
  });
  if (gpu) add("GPU kernel, all in GPU memory", run_on_gpu);
  return all;
}

namespace {

u64 failed_itself(const report::Cell& cell) {
  const nlohmann::ordered_json& statuses = cell.extra.at("rdma").at("completion_statuses");
  return statuses.value(rdma::status_name(static_cast<u16>(rdma::Status::remote_operation)), u64{0});
}

FaultCheck found_by_rdma(model::Fault f, const report::Cell& cell, u64 injected) {
  switch (f) {
    case model::Fault::drop:
      // No later completion stands for the last one, so the loop waits for it until its deadline.
      return {injected, cell.errors.at("skipped") + (cell.errors.at("timeout") > 0 ? 1 : 0), "skipped"};
    case model::Fault::error:
      return {injected, failed_itself(cell), "completion error, the rest flushed"};
    case model::Fault::duplicate:
      return {injected, cell.verify.duplicated, "duplicated"};
    default:
      return {};
  }
}

}  // namespace

FaultCheck check_rdma_fault(model::Fault fault, double times, const measure::RunWatch& watch) {
  return check_rma_fault(rdma::bench_of({}), fault, times, watch, found_by_rdma);
}

}  // namespace doorbell::cli
