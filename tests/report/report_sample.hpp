// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result with a value in every field, for the tests of its views.
#pragma once

#include <limits>

#include "measure/histogram.hpp"
#include "measure/statistics.hpp"
#include "report/result.hpp"

namespace doorbell::test {

inline report::Metrics sample_metrics(u64 ops, u64 block_bytes, double elapsed_s, u64 fastest_ns) {
  measure::Histogram histogram;
  for (u64 i = 0; i < ops; ++i) histogram.record(fastest_ns + (i * i) % 9973 + (i % 997 == 0 ? 40'000 : 0));
  report::Metrics m;
  m.ops = ops;
  m.bytes = ops * block_bytes;
  m.elapsed_s = elapsed_s;
  m.ops_per_s = static_cast<double>(ops) / elapsed_s;
  m.bytes_per_s = static_cast<double>(m.bytes) / elapsed_s;
  m.latency_ns = histogram.to_latency();
  return m;
}

inline report::Cell sample_nvme_cell() {
  report::Cell c;
  c.path = "nvme";
  c.cell = {{"rw", "randrw"}, {"block_bytes", 4096}, {"depth", 64}};
  c.options = {{"initiator", "gpu"}, {"seed", 7}, {"note", "a \"quoted\" <b>name</b>, with a comma"}};
  c.initiator_kind = "gpu";
  c.gpu = 0;
  c.device_kind = "model";
  c.device_name = "model:blocks=1M,latency=10us";
  c.parts.emplace_back("write", sample_metrics(20'000, 4096, 0.05, 8'000));
  c.parts.emplace_back("read", sample_metrics(30'000, 4096, 0.05, 6'000));
  c.metrics = sample_metrics(50'000, 4096, 0.05, 7'000);
  c.substeps_ns.build = 71;
  c.substeps_ns.sq_doorbell = 596;
  c.substeps_ns.total = 9120.5;
  const double rates[] = {1'000'000, 1'010'000, 990'000, 1'005'000, 995'000, 1'002'000, 1'200'000};
  std::vector<double> p50;
  for (u64 i = 0; i < 7; ++i) {
    report::Repeat r;
    r.seed = 7 + i;
    r.ops_per_s = rates[i];
    r.bytes_per_s = rates[i] * 4096;
    r.p50_ns = 9'000.0 + static_cast<double>(i);
    if (i != 2) r.p99_ns = 17'000;
    r.errors = i == 3 ? 3 : 0;
    p50.push_back(*r.p50_ns);
    c.repeats.push_back(r);
  }
  c.spread["ops_per_s"] = measure::spread_of(rates);
  c.spread["p50_ns"] = measure::spread_of(p50);
  c.verify.mode = "full";
  c.verify.checked = 100'000;
  c.verify.checked_bytes = 51'200'000;
  c.verify.corrupt = 3;
  c.verify.first.push_back({"corrupt", 0x1000, 41});
  c.errors = {{"completion", 0}, {"timeout", 1}};
  c.cost.cpu_user_s = 0.25;
  c.cost.cpu_system_s = 0.0625;
  c.cost.cpu_ns_per_op = 31.25;
  c.cost.threads.push_back({"device", 0.25});
  c.cost.doorbells_per_op = 0.03125;
  c.cost.polls_per_completion = std::numeric_limits<double>::infinity();
  c.extra["nvme"]["queues"] = 4;
  c.extra["nvme"]["ratio"] = std::numeric_limits<double>::quiet_NaN();
  c.extra["power"]["idle_w"] = 71.5;
  return c;
}

inline report::Cell sample_net_cell() {
  report::Cell c;
  c.path = "net";
  c.cell = {{"frame_bytes", 64}, {"note", "a=b;c"}};
  c.initiator_kind = "cpu";
  c.device_kind = "emulated";
  c.device_name = "veth \"pair\", kernel\x1b[31m";
  c.metrics.ops = 12;
  c.metrics.bytes = 768;
  c.metrics.elapsed_s = 0.5;
  c.metrics.ops_per_s = 24;
  c.metrics.bytes_per_s = 1536;
  return c;
}

inline report::Result sample_result() {
  report::Result r;
  r.argv = {"doorbell", "nvme", "--fault", "corrupt=0.01"};
  r.environment = {{"kernel", "Linux 6.1.0"}, {"cpu", nullptr}, {"clock_read_ns", 35.5}};
  r.exit_code = 2;
  r.warnings = {"the machine is busy"};
  r.cells = {sample_nvme_cell(), sample_net_cell()};
  return r;
}

}  // namespace doorbell::test
