// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/kernel_engines.hpp"

#include <fmt/format.h>

#include <exception>

namespace doorbell::rdma {

KernelEngines::KernelEngines(ModelShared& shared, const FormatShape& format, std::shared_ptr<gpu::Gpu> gpu,
                             const Region& registers)
    : shared_(shared),
      servers_(gpu, model::Servers::fitting(shared.config.threads, gpu.get()), sizeof(ServerOrder)) {
  const u64 n = servers_.count();
  gone_at_ = model::Servers::lines(sizeof(ServerJob));
  const u64 link_at = gone_at_ + model::Servers::kLine;
  images_at_ = link_at + model::Servers::kLine;
  counts_at_ = images_at_ + model::Servers::lines(n * kServedQps * sizeof(Qp));
  state_ = servers_.allocate(counts_at_ + n * sizeof(ServedCounts));
  ServerJob job{};
  job.keys = shared.memory.keys();
  if (gpu) {
    keys_ = servers_.allocate(MemoryTable::kBytes);
    shared.memory.mirror(&keys_);
    job.keys.entries = servers_.reach<const MemoryEntry>(keys_);
  }
  job.rule = shared.engine_rule();
  job.faults = shared.faults.rule();
  job.link = shared.link.rule();
  job.link_free_at = servers_.reach<u64>(state_, link_at);
  job.gone = servers_.reach<u32>(state_, gone_at_);
  job.alive = servers_.reach<u32>(registers);
  job.sequences = servers_.sequences();
  job.orders = servers_.orders<ServerOrder>();
  job.answers = servers_.answers<ServerAnswer>();
  job.images = servers_.reach<Qp>(state_, images_at_);
  job.counts = servers_.reach<ServedCounts>(state_, counts_at_);
  state_.write(0, &job, sizeof job);
  if (gpu) {
    servers_.launch(fmt::format("doorbell_rdma_{}_nic", format.name), kServerThreads, format.served_bytes,
                    state_);
  } else {
    servers_.start_threads("rdma-kernel", [&](u32 server) {
      return format.serve(*reinterpret_cast<const ServerJob*>(state_.host()), server);
    });
  }
}

KernelEngines::~KernelEngines() {
  shared_.memory.mirror(nullptr);
  const ServerOrder end;
  servers_.end(&end);
}

std::unique_ptr<EngineBase> KernelEngines::engine(u32 server) {
  return std::make_unique<KernelEngine>(*this, server);
}

bool KernelEngines::order(u32 server, ServerOrder::Kind kind, u32 queue_pairs) {
  const ServerOrder order{kind, queue_pairs};
  return servers_.order(server, 1, &order);
}

void KernelEngines::give_up() {
  (void)shared_.presence.leave();
  servers_.give_up(state_, gone_at_);
}

void KernelEngine::run_between_rounds(const std::function<void()>& work) {
  const std::scoped_lock lock(mutex_);
  const bool paused = all_.order(server_, ServerOrder::Kind::pause) && fetch();
  std::exception_ptr failed;
  try {
    work();
  } catch (...) {
    failed = std::current_exception();  // the engine goes on all the same
  }
  if (!paused || !give_back() ||
      !all_.order(server_, ServerOrder::Kind::resume, static_cast<u32>(qps_.size())))
    all_.give_up();
  if (failed) std::rethrow_exception(failed);
}

bool KernelEngine::fetch() {
  std::vector<Qp> images(qps_.size());
  ServedCounts now;
  try {
    if (!images.empty())
      all_.state_.read(all_.images_at_ + u64{server_} * kServedQps * sizeof(Qp), images.data(),
                       images.size() * sizeof(Qp));
    all_.state_.read(all_.counts_at_ + server_ * sizeof now, &now, sizeof now);
  } catch (const std::exception&) {
    return false;
  }
  for (std::size_t i = 0; i < images.size(); ++i) *qps_[i] = images[i];
  for (u32 k = 0; k < model::kFaultKinds; ++k)
    all_.shared_.faults.count(static_cast<model::Fault>(k), now.injected[k] - counted_.injected[k]);
  counted_ = now;
  return true;
}

bool KernelEngine::give_back() {
  std::vector<Qp> images;
  for (const Qp* const q : qps_) images.push_back(*q);
  try {
    if (!images.empty())
      all_.state_.write(all_.images_at_ + u64{server_} * kServedQps * sizeof(Qp), images.data(),
                        images.size() * sizeof(Qp));
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

}  // namespace doorbell::rdma
