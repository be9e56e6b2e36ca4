// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the tests of `doorbell nvme` on the model share: a run in which a busy machine causes no late
// completions, and the checks of a run without errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "model/faults.hpp"
#include "nvme/bench.hpp"

namespace doorbell::nvme::bench_rig {

inline BenchOptions usual() {
  BenchOptions o;
  o.controller = "model:capacity=64Mi";
  o.write_io = 400;
  o.read_io = 400;
  return never_late(o);
}

inline void expect_clean(const BenchResult& r, u64 checked) {
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, "done");
  for (const auto& [kind, n] : r.cell().errors) EXPECT_EQ(n, 0u) << kind;
  const report::Verify& v = r.cell().verify;
  EXPECT_EQ(v.checked, checked);
  EXPECT_EQ(v.unverifiable, 0u);
  EXPECT_EQ(v.failed(), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("dma_faults"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("invalid_doorbell_values"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("unknown_doorbells"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("error_completions"), 0u);
}

inline void run_clean(const BenchOptions& o) {
  SCOPED_TRACE(testing::Message() << o.controller << " lbas " << o.lbas_per_io << " queues " << o.num_queues
                                  << " length " << o.queue_length << " batch " << o.batch
                                  << (o.random ? " random" : "") << (o.shadow_doorbells ? " shadow" : ""));
  const BenchResult r = run_bench(o, {});
  expect_clean(r, o.read_io);
  EXPECT_EQ(r.cell().metrics.ops, o.write_io + o.read_io);
  EXPECT_EQ(r.cell().metrics.latency_ns.count, o.write_io + o.read_io);
}

}  // namespace doorbell::nvme::bench_rig
