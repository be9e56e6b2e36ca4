// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/cli/demo.hpp"
#include "qdma/cli/parts.hpp"

namespace doorbell::cli {

namespace {

FaultCheck found_by_qdma(model::Fault f, const report::Cell& cell, u64 injected) {
  switch (f) {
    case model::Fault::drop:
      return {injected, cell.errors.at("completion"), "error number ETIMEDOUT"};
    case model::Fault::error:
      return {injected, cell.errors.at("completion"), "error number"};
    // The card's memory holds other data, where a NIC's model leaves a target as it was.
    case model::Fault::misplace:
      return {injected, cell.verify.misplaced, "misplaced"};
    case model::Fault::stale:
      return {injected, cell.verify.stale, "stale"};
    default:
      return {};
  }
}

}  // namespace

std::vector<DemoStep> qdma_demo_steps(bool) {
  std::vector<DemoStep> all;
  const auto add = [&](std::string title, const qdma::CardUse& use, auto change) {
    rma::BenchOptions b = qdma::bench_of_transfers(use);
    change(b);
    all.push_back(rma_demo_step(std::move(title), b));
  };
  add("host to card, both channels", {}, [](auto& b) {
    b.sizes = {1 << 20};
    b.latency = false;
    b.iterations = 64;
  });
  add("card to host, one channel", {.memory = qdma::card_memory("hbm"), .channels = qdma::Channels::only0},
      [](auto& b) {
        b.sizes = {1 << 20};
        b.op = rma::Op::read;
        b.latency = false;
        b.iterations = 64;
      });
  return all;
}

FaultCheck check_qdma_fault(model::Fault fault, double times, const measure::RunWatch& watch) {
  // The model refuses it.
  if (fault == model::Fault::duplicate) return {0, 0, "cannot happen: a driver's call returns once"};
  rma::BenchOptions b = qdma::bench_of_transfers({.deadline_s = 0.3});
  b.sizes = {4 << 10};
  // Data that a transfer delivers wrong is a get's; a put may be acknowledged and not done.
  if (fault == model::Fault::corrupt || fault == model::Fault::misplace) b.op = rma::Op::read;
  return check_rma_fault(b, fault, times, watch, found_by_qdma);
}

}  // namespace doorbell::cli
