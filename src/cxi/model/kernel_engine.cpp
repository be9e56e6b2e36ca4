// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/kernel_engine.hpp"

#include <exception>

#include "cxi/model/served_engine.hpp"
#include "system/clock.hpp"

namespace doorbell::cxi {

namespace {

/// A thread that runs the code of a kernel's block, with one lane.
class ServedThread {
  using Served = ServedEngine<OneLane, HostClock>;

 public:
  ServedThread(const ServerJob& job, u32 server)
      : memory_(std::make_unique<Served::Memory>()), engine_(lane_, job, server, *memory_, 0) {}
  bool poll() { return engine_.round() == Served::Round::worked; }

 private:
  OneLane lane_;
  std::unique_ptr<Served::Memory> memory_;
  Served engine_;
};

}  // namespace

const ServeOnThread& serve_with_one_lane() {
  static const ServeOnThread serve = [](const ServerJob& job, u32 server) -> std::function<bool()> {
    return [s = std::make_shared<ServedThread>(job, server)] { return s->poll(); };
  };
  return serve;
}

KernelEngine::KernelEngine(ModelShared& shared, std::shared_ptr<gpu::Gpu> gpu, const Region& alive,
                           const ServeOnThread& on_thread)
    : shared_(shared), servers_(gpu, 1, sizeof(ServerOrder)) {
  ServerJob job{};
  job.rule = shared.engine_rule();
  job.faults = shared.faults.rule();
  job.link = shared.link.rule();
  const auto lines = [](u64 bytes) { return model::Servers::lines(bytes); };
  const u32 entries = shared.config.max_list_entries, late = job.rule.reports_late() ? kServedLate : 0;
  gone_at_ = lines(sizeof job);
  const u64 link_at = gone_at_ + model::Servers::kLine;
  counts_at_ = link_at + model::Servers::kLine;
  const u64 entries_at = counts_at_ + lines(sizeof(ServedCounts));
  const u64 triggers_at =
      entries_at + lines(entries > kServedEntries ? (entries - kServedEntries) * sizeof(ListEntry) : 0);
  const u64 late_at = triggers_at + lines(kMaxTriggers * sizeof(Trigger));
  state_ = servers_.allocate(late_at + late * sizeof(LateItems::Item));
  job.link_free_at = servers_.reach<u64>(state_, link_at);
  job.gone = servers_.reach<u32>(state_, gone_at_);
  job.alive = servers_.reach<u32>(alive);
  job.sequences = servers_.sequences();
  job.orders = servers_.orders<ServerOrder>();
  job.answers = servers_.answers<ServerAnswer>();
  job.counts = servers_.reach<ServedCounts>(state_, counts_at_);
  job.list_entries = servers_.reach<ListEntry>(state_, entries_at);
  job.triggers = servers_.reach<Trigger>(state_, triggers_at);
  job.late.items = servers_.reach<LateItems::Item>(state_, late_at);
  job.late.room = late;
  state_.write(0, &job, sizeof job);
  if (gpu) {
    servers_.launch("doorbell_cxi_cassini", kServerThreads, sizeof(ServedMemory<HostClock>), state_);
  } else {
    servers_.start_threads("cxi-kernel", [&](u32 server) {
      return on_thread(*reinterpret_cast<const ServerJob*>(state_.host()), server);
    });
  }
}

KernelEngine::~KernelEngine() {
  const ServerOrder end;
  servers_.end(&end);
}

void KernelEngine::change(const Change& c) {
  const ServerOrder order{ServerOrder::Kind::change, c};
  if (!servers_.order_all(&order) || !read_counts()) give_up();
}

bool KernelEngine::read_counts() {
  ServedCounts now;
  try {
    state_.read(counts_at_, &now, sizeof now);
  } catch (const std::exception&) {
    return false;
  }
  for (u32 k = 0; k < model::kFaultKinds; ++k)
    shared_.faults.count(static_cast<model::Fault>(k), now.injected[k] - counted_.injected[k]);
  counted_ = now;
  return true;
}

void KernelEngine::give_up() {
  (void)shared_.presence.leave();
  servers_.give_up(state_, gone_at_);
}

}  // namespace doorbell::cxi
