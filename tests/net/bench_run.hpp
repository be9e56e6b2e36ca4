// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs of the bench that tests measure with, and what holds of each.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "net/bench/bench.hpp"
#include "options/setting.hpp"

namespace doorbell::net {

inline BenchOptions options_of(const std::string& stream, u64 payload, u64 count) {
  BenchOptions o;
  Setting::name_by_options();
  o.stream = stream;
  o.link = stream == "raw" ? "ring" : "lo";
  o.payloads = {payload};
  o.count = count;
  o.settle_s = 0.1;
  o.late_after_s = 50;  // a busy machine is not what is looked for
  return o;
}

/// The conditions that every run without faults must meet.
inline void expect_accounted(const measure::BenchResult& r) {
  for (const report::Cell& cell : r.cells) {
    const auto& net = cell.extra.at("net");
    EXPECT_EQ(net.at("sent"), net.at("unique").get<u64>() + net.at("lost").get<u64>());
    EXPECT_EQ(cell.extra.at("drops").at("unexplained"), 0u);
    EXPECT_EQ(cell.errors.at("identity"), 0u);
    EXPECT_EQ(cell.verify.failed(), 0u) << cell.extra.dump(1);
  }
}

}  // namespace doorbell::net
