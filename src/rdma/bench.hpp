// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bench of `doorbell rdma` over a NIC's connections: one-sided operations (rma/bench.hpp), and sends.
#pragma once

#include "exchange/socket.hpp"
#include "rdma/backends.hpp"
#include "rma/bench.hpp"

namespace doorbell::rdma {

/// `open`, if given, opens another port than the one that the options name.
struct BenchOptions : rma::BenchOptions {
  BenchOptions() { texts.path = "rdma"; }
  Provider provider = Provider::mlx5;
  ConnectionOptions connection;
  exchange::SocketName other_end;  ///< Ends::remote: the address at which the other process listens
};

/// Checks the options as far as this is possible without a device. Throws doorbell::Error.
void check(const BenchOptions& options);

/// These options as those of a bench of one-sided operations, which opens the NIC that they name.
[[nodiscard]] rma::BenchOptions bench_of(const BenchOptions& options);

/// check(), then rma::run_bench() of bench_of().
[[nodiscard]] BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::rdma
