// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What `doorbell rdma` measures: one-sided operations (rma/bench.hpp), and sends, over a NIC's connections.
#pragma once

#include "rdma/backends.hpp"
#include "rdma/exchange.hpp"
#include "rma/bench.hpp"

namespace doorbell::rdma {

/// `open`, when given, opens another port than the options name.
struct BenchOptions : rma::BenchOptions {
  BenchOptions() { texts.path = "rdma"; }
  Provider provider = Provider::mlx5;
  ConnectionOptions connection;
  SocketName other_end;  ///< Ends::remote: where the other process listens
};

/// What the options say, checked as far as no device is needed. Throws doorbell::Error.
void check(const BenchOptions& options);

/// The same as a bench of one-sided operations, which opens the NIC that they name.
[[nodiscard]] rma::BenchOptions bench_of(const BenchOptions& options);

/// check(), then rma::run_bench() of bench_of().
[[nodiscard]] BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::rdma
