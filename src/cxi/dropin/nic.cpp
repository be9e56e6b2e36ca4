// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/nic.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cxi/model/engine_thread.hpp"

namespace doorbell::cxi::dropin {

namespace {

constexpr u32 kFirstNid = 0x400;
// Dedicated access, bulk data and best effort, as the driver's default service has them.
constexpr u32 kUsualClasses = 1u << 0 | 1u << 2 | 1u << 3;

}  // namespace

bool Service::allows(u64 vni) const {
  return std::ranges::find(vnis, vni) != vnis.end();
}

Nic::Nic(const ModelConfig& config)
    : shared(config, (kFirstNid + config.number) & kMaxNid),
      alive(Place::pageable, 4096),
      services{{kDefaultService, {1, 10}, kUsualClasses}, {2, {10}, kUsualClasses}},
      owners("LNIs", 1, kMaxOwners),
      transmit_queues("transmit queues", 0),
      target_queues("target queues", kMaxTransmitQueues),
      event_queues("event queues", 1),
      counters("counters", 1),
      entries("portals entries", 0),
      memories("places for mapped memory", 0),
      domains("domains", 0, 1024) {
  if (config.engine != ModelConfig::Engine::cpu)
    throw Error("engine", "a Cassini for other programs is served by a thread of the CPU", "engine=cpu");
  shared.presence.show(reinterpret_cast<u32*>(alive.host()));
  engine = engine_on_thread(shared, space, nullptr);
  const MostObjects most = engine->most();
  transmit_queues.end(most.transmit_queues);
  target_queues.end(kMaxTransmitQueues + most.target_queues);
  event_queues.end(most.event_queues);
  counters.end(most.counters);
  entries.end(most.entries);
  memories.end(most.memories);
  thread = std::make_unique<model::DeviceThread>(
      "cxi-model", [this] { return engine->poll(); }, config.rests);
}

Nic::~Nic() {
  thread.reset();
}

const Service* Nic::service(u64 id) const {
  const auto found = std::ranges::find(services, id, &Service::id);
  return found != services.end() ? &*found : nullptr;
}

int Nic::free_pids(u32 vni, u64 wanted, u64 count) const {
  const u64 all = pid_count();
  if (count == 0 || count > all) return -1;
  const auto is_free = [&](u64 from) {
    const auto at = pids.lower_bound({vni, static_cast<u32>(from)});
    return at == pids.end() || at->first.first != vni || at->first.second >= from + count;
  };
  if (wanted != kAnyPid) return wanted <= all - count && is_free(wanted) ? static_cast<int>(wanted) : -1;
  for (u64 from = 0; from + count <= all; ++from)
    if (is_free(from)) return static_cast<int>(from);
  return -1;
}

nlohmann::ordered_json Nic::counts() {
  return counters_of(*engine, shared);
}

}  // namespace doorbell::cxi::dropin
