// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/bench.hpp"

#include <fmt/format.h>

#include "rdma/nic_port.hpp"
#include "rdma/remote_server.hpp"

namespace doorbell::rdma {

void check(const BenchOptions& o) {
  rma::check(o);
  const SettingNames& n = o.texts.settings;
  if (o.initiator == Initiator::gpu && o.provider == Provider::verbs)
    throw Error(n.initiator, "gpu cannot post through libibverbs: its queues belong to a library of the host",
                fmt::format("use {} cpu, or the device's own provider (mlx5)", n.initiator));
}

BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch) {
  check(options);
  rma::BenchOptions o = options;
  o.texts.provider = name(options.provider);
  o.texts.connects = true;
  o.texts.kernels = kernels_of(options.provider);
  NicPort* open_port = nullptr;  // the cell's, while it runs
  if (!o.open)
    o.open = [&](const PortRequest& r) {
      auto port = std::make_unique<NicPort>(open_nic({.spec = r.spec,
                                                      .provider = options.provider,
                                                      .gpu = r.gpu,
                                                      .use = r.use}),
                                            options.connection);
      open_port = port.get();
      return port;
    };
  o.connect_remote = [&](const measure::RunWatch& w) {
    return std::make_unique<RemoteServer>(options.other_end, options.timeout_s, w.stop, options.connection,
                                          [&]() -> NicQueues& { return open_port->queues(); });
  };
  return rma::run_bench(o, watch);
}

}  // namespace doorbell::rdma
