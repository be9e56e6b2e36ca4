// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Checks that every NVMe run without faults must pass, on whatever device.
#pragma once

#include <gtest/gtest.h>

#include "nvme/bench.hpp"

namespace doorbell::nvme {

/// `checked`: reads whose data was checked.
inline void expect_nothing_wrong(const BenchResult& r, u64 checked) {
  EXPECT_FALSE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::done);
  for (const auto& [kind, n] : r.cell().errors) EXPECT_EQ(n, 0u) << kind;
  const report::Verify& v = r.cell().verify;
  EXPECT_EQ(v.checked, checked);
  EXPECT_EQ(v.unverifiable, 0u);
  EXPECT_EQ(v.failed(), 0u);
}

/// `r` did every I/O of `o`, which says how many.
inline void expect_all_done(const BenchResult& r, const BenchOptions& o) {
  EXPECT_EQ(r.cell().metrics.ops, o.write_io + o.read_io);
  EXPECT_EQ(r.cell().metrics.latency_ns.count, o.write_io + o.read_io);
}

/// For SCOPED_TRACE.
inline testing::Message shape_of(const BenchOptions& o) {
  return testing::Message() << o.controller << " lbas " << o.lbas_per_io << " queues " << o.num_queues
                            << " length " << o.queue_length << " batch " << o.batch
                            << (o.random ? " random" : "") << (o.shadow_doorbells ? " shadow" : "");
}

}  // namespace doorbell::nvme
