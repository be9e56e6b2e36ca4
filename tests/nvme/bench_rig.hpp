// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The rig of the tests of `doorbell nvme` on the model: a run in which a busy machine causes no late
// completions, and the checks of a run without errors.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "clean.hpp"
#include "model/faults.hpp"
#include "options/setting.hpp"

namespace doorbell::nvme::bench_rig {

inline BenchOptions usual() {
  BenchOptions o;
  o.controller = "model:capacity=64Mi";
  o.write_io = 400;
  o.read_io = 400;
  Setting::name_by_options();
  return never_late(o);
}

inline void expect_clean(const BenchResult& r, u64 checked) {
  expect_nothing_wrong(r, checked);
  EXPECT_EQ(r.cell().extra.at("model").at("dma_faults"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("invalid_doorbell_values"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("unknown_doorbells"), 0u);
  EXPECT_EQ(r.cell().extra.at("model").at("error_completions"), 0u);
}

inline void run_clean(const BenchOptions& o) {
  SCOPED_TRACE(shape_of(o));
  const BenchResult r = run_bench(o, {});
  expect_clean(r, o.read_io);
  expect_all_done(r, o);
}

}  // namespace doorbell::nvme::bench_rig
