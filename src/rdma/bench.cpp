// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/bench.hpp"

#include <fmt/format.h>

#include "rdma/nic_port.hpp"
#include "rdma/remote_server.hpp"
#include "rdma/settings.hpp"

namespace doorbell::rdma {

void check(const BenchOptions& o) {
  rma::check(o);
  if (o.initiator == Initiator::gpu && o.provider == Provider::verbs)
    throw Error(setting::initiator,
                "gpu cannot post through libibverbs: its queues belong to a library of the host",
                fmt::format("use {} cpu, or the device's own provider (mlx5)", setting::initiator));
}

rma::BenchOptions bench_of(const BenchOptions& options) {
  rma::BenchOptions o = options;
  o.texts.provider = name(options.provider);
  o.texts.connects = true;
  o.texts.queues = setting::queues;
  o.texts.kernels = kernels_of(options.provider);
  if (o.open) return o;
  const auto open_port = std::make_shared<NicPort*>(nullptr);  // the cell's port, while the cell runs
  o.open = [provider = options.provider, connection = options.connection, open_port](const PortRequest& r) {
    auto port = std::make_unique<NicPort>(
        open_device({.spec = r.spec, .provider = provider, .gpu = r.gpu, .use = r.use}), connection);
    *open_port = port.get();
    return port;
  };
  o.connect_remote = [connection = options.connection, at = options.other_end,
                      setting = std::string(setting::connect), limit_s = options.timeout_s,
                      open_port](const measure::RunWatch& watch) {
    return std::make_unique<RemoteServer>(at, setting, limit_s, watch.stop, connection,
                                          [open_port]() -> NicQueues& { return (*open_port)->queues(); });
  };
  return o;
}

BenchResult run_bench(const BenchOptions& options, const measure::RunWatch& watch) {
  check(options);
  return rma::run_bench(bench_of(options), watch);
}

}  // namespace doorbell::rdma
