// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "net/bench/bench.hpp"
#include "net/cli/parts.hpp"
#include "net/flow/relay.hpp"

namespace doorbell::cli {

namespace {

net::BenchOptions options_of(const std::string& stream, std::vector<u64> payloads, u64 count) {
  net::BenchOptions b;
  b.stream = stream;
  b.link = net::kind_of(b).usual_link;
  b.payloads = std::move(payloads);
  b.count = count;
  b.timeout_s = kDemoTimeoutS;
  b.late_after_s = kDemoLateAfterS;
  return b;
}

DemoStep step(std::string title, const net::BenchOptions& options) {
  return {std::move(title),
          [options](const measure::RunWatch& watch) { return net::run_bench(options, watch); }};
}

}  // namespace

std::vector<DemoStep> net_demo_steps(bool) {
  std::vector<DemoStep> all;
  all.push_back(step("raw Ethernet frames, ring", options_of("raw", {1000}, 200'000)));
  all.push_back(step("TCP records, loopback", options_of("tcp", {64 << 10}, 10'000)));
  all.push_back(step("UDP datagrams, loopback", options_of("udp", {8000}, 50'000)));
  all.push_back(step("RoCE SENDs, a ConnectX model", options_of("roce", {64 << 10}, 5'000)));
  return all;
}

FaultCheck check_net_fault(model::Fault fault, double times, const measure::RunWatch& watch) {
  const auto kinds = net::relay_faults();
  if (std::ranges::find(kinds, fault) == kinds.end()) return {0, 0, "no fault of packets"};
  net::BenchOptions b = options_of("raw", {1000}, 20'000);
  b.faults.probability[static_cast<u32>(fault)] = 0.002;
  // Far more than a busy machine takes, so that only what is held back is late.
  b.late_after_s = 0.4 * times;
  b.relay_delay_s = 0.5 * times;
  b.settle_s = (fault == model::Fault::delay ? 2 : 0.25) * times;
  const measure::BenchResult r = net::run_bench(b, watch);
  const report::Cell& cell = r.cell();
  const u64 injected = cell.extra.at("model").at("injected").at(std::string(model::name(fault))).get<u64>();
  switch (fault) {
    case model::Fault::drop:
      return {injected, cell.verify.missing, "missing"};
    case model::Fault::delay:
      return {injected, cell.errors.at("late"), "late"};
    case model::Fault::corrupt:
      return {injected, cell.verify.corrupt, "corrupt"};
    case model::Fault::misplace:
      return {injected, cell.verify.misplaced, "misplaced"};
    case model::Fault::duplicate:
      return {injected, cell.verify.duplicated, "duplicated"};
    default:
      return {injected, r.failed ? 0 : injected, "out of order, which is no error"};
  }
}

}  // namespace doorbell::cli
