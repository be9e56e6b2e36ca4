// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Options that a bench of RDMA operations refuses.
#pragma once

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <string>

#include "rdma/bench.hpp"

namespace doorbell::rdma {

/// The error says `what`.
inline void expect_refused(const BenchOptions& o, const std::string& what) {
  try {
    (void)run_bench(o, {});
    ADD_FAILURE() << "not refused: " << what;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
  }
}

}  // namespace doorbell::rdma
