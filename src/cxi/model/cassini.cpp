// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/cassini.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "cxi/model/endpoint.hpp"
#include "cxi/model/engine_thread.hpp"

namespace doorbell::cxi {

namespace {

constexpr u32 kFirstNid = 0x400;
constexpr u64 kPage = 4096;

}  // namespace

u32 Handles::claim() {
  for (u32 i = first_; i < used_.size(); ++i) {
    if (used_[i]) continue;
    used_[i] = true;
    return i;
  }
  throw CallError(CallError::Call::other, ENOSPC, fmt::format("creating one of the model's {}", what_),
                  fmt::format("all {} are in use", used_.size() - first_));
}

// Handle 0 means no event queue and no counter. Address contexts and processes begin at 1, so that a number
// that was never set is noticed.
ModelCassini::ModelCassini(const ModelConfig& config, std::string name,
                           std::vector<std::shared_ptr<gpu::Gpu>> gpus, const ServeOnThread& on_thread)
    : shared_(config, (kFirstNid + config.number) & kMaxNid),
      name_(std::move(name)),
      gpus_(std::move(gpus)),
      alive_(registers(kPage)),
      transmit_queues_("transmit queues", 0),
      target_queues_("target queues", kMaxTransmitQueues),
      event_queues_("event queues", 1),
      counters_("counters", 1),
      entries_("portals entries", 0),
      memories_("places for mapped memory", 0),
      contexts_("address contexts", 1, kMaxContexts),
      profiles_("communication profiles", 0, kMaxProfiles),
      pids_("process numbers", 1, std::min(1u << config.pid_bits, kAnyPid)) {
  // The agent is a kernel of the first GPU. While that kernel runs, a driver may wait for its end before it
  // maps more memory.
  for (std::size_t i = 1; i < gpus_.size(); ++i) gpu()->reach(*gpus_[i]);
  // The agent's polling slows every other kernel's fences and PCIe reads, so it runs only where it is needed.
  shared_.presence.show(reinterpret_cast<u32*>(alive_.host()));
  if (gpu() && config.gpu_memory && config.engine == ModelConfig::Engine::cpu)
    agent_ = std::make_unique<model::DmaAgent>(gpu(), 1);
  if (config.engine == ModelConfig::Engine::cpu) engine_ = engine_on_thread(shared_, space_, agent_.get());
  else if (served_by_gpu() && !gpu())
    throw Error(name_, "its engine is a kernel, and it was opened without a GPU");
  else engine_ = std::make_unique<KernelEngine>(shared_, served_by_gpu() ? gpu() : none_, alive_, on_thread);
  const MostObjects most = engine_->most();
  transmit_queues_.end(most.transmit_queues);
  target_queues_.end(kMaxTransmitQueues + most.target_queues);
  event_queues_.end(most.event_queues);
  counters_.end(most.counters);
  entries_.end(most.entries);
  memories_.end(most.memories);
  if (config.own_thread && config.engine == ModelConfig::Engine::cpu)
    thread_ = std::make_unique<model::DeviceThread>("cxi-model", [this] { return engine_->poll(); });
}

ModelCassini::~ModelCassini() {
  thread_.reset();
}

Limits ModelCassini::limits() const {
  return {.max_slots = kMaxSlots,
          .max_transfer = 0xffff'ffffULL,
          .max_buffers = shared_.config.max_list_entries,
          .gpu_memory = reaches_gpu_memory(),
          .gpu_initiator = gpu() != nullptr};
}

void ModelCassini::require_reachable(Place place, const char* what) const {
  if (place == Place::gpu && !reaches_gpu_memory())
    throw Error(what, "this model was opened without access to a GPU's memory");
}

Region ModelCassini::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> wanted) {
  require_reachable(place, "GPU memory for the model");
  if (place == Place::gpu && wanted && std::ranges::find(gpus_, wanted) == gpus_.end())
    throw Error("GPU memory for the model",
                fmt::format("it was opened without GPU {}", wanted->info().index));
  return space_.allocate(place, bytes, wanted ? std::move(wanted) : gpu());
}

std::unique_ptr<Endpoint> ModelCassini::open(u32 service) {
  if (service != kDefaultService && service != kRestrictedService)
    throw CallError(CallError::Call::service, ENOENT, fmt::format("service {} of {}", service, name_),
                    "the model has services 1 and 2");
  const std::scoped_lock lock(mutex_);
  return std::make_unique<ModelEndpoint>(*this, service == kDefaultService ? kDefaultVni : kRestrictedVni);
}

const u32* ModelCassini::alive(Initiator initiator) {
  return reinterpret_cast<const u32*>(initiator == Initiator::gpu ? alive_.device() : alive_.host());
}

nlohmann::ordered_json ModelCassini::counters() {
  const std::scoped_lock lock(mutex_);
  return counters_of(*engine_, shared_);
}

nlohmann::ordered_json counters_of(EngineBase& engine, const ModelShared& shared) {
  engine.refresh();
  const EngineCounters& c = engine.counters();
  nlohmann::ordered_json j;
  j["commands"] = c.commands.value();
  j["puts"] = c.puts.value();
  j["gets"] = c.gets.value();
  j["idc_puts"] = c.idc_puts.value();
  j["atomics"] = c.atomics.value();
  j["unrestricted"] = c.unrestricted.value();
  j["bytes"] = c.bytes.value();
  j["packets"] = c.packets.value();
  j["doorbells"] = c.doorbells.value();
  j["window_writes"] = c.window_writes.value();
  j["rejected_window_writes"] = c.rejected_windows.value();
  j["invalid_doorbell_values"] = c.invalid_doorbells.value();
  j["command_failures"] = c.command_failures.value();
  j["refused_operations"] = c.refused_operations.value();
  j["events"] = c.events.value();
  j["dropped_events"] = c.dropped_events.value();
  j["triggered_operations"] = c.triggered.value();
  if (shared.config.engine != ModelConfig::Engine::cpu) j["in_bursts"] = c.in_bursts.value();
  j["dma_faults"] = engine.dma_faults();
  nlohmann::ordered_json faults = shared.faults.json();
  faults["eq_full"] = c.eq_full.value();
  faults["stuck_read"] = c.stuck_read.value();
  faults["pte_disable"] = c.pte_disabled.value();
  j["injected"] = std::move(faults);
  return j;
}

}  // namespace doorbell::cxi
