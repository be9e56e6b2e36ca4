// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell rdma --listen`: the other end of a run; a client sends the options.
#pragma once

#include "exchange/socket.hpp"
#include "rdma/bench.hpp"

namespace doorbell::rdma {

struct ServeOptions {
  Provider provider = Provider::verbs;
  std::string device;
  exchange::SocketName at;
  double wait_s = 86400;  ///< the time to wait for a client
  double timeout_s = 10;  ///< the time to wait for each of its messages
};

struct ServeResult {
  u64 cells = 0;
  u64 operations = 0;
  u64 checked = 0;
  u64 errors = 0;  ///< data and completion errors of all cells
};

/// Serves one client. `watch.progress` gets the address and each cell. Throws doorbell::Error.
[[nodiscard]] ServeResult serve(const ServeOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::rdma
