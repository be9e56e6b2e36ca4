// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software Cassini behind the Cassini interface: services, endpoints, handles, the device's thread.
#pragma once

#include <mutex>
#include <vector>

#include "cxi/cassini_device.hpp"
#include "cxi/model/kernel_engine.hpp"
#include "model/device_thread.hpp"
#include "model/dma.hpp"

namespace doorbell::cxi {

/// The numbers in use; claim() returns the lowest free one.
class Handles {
 public:
  Handles(const char* what, u32 first, u32 last = 0) : what_(what), first_(first), used_(last) {}
  /// There are numbers up to `last`, which is not one of them. Before the first claim.
  void end(u32 last) { used_.resize(last); }
  /// Throws CallError when all are in use.
  [[nodiscard]] u32 claim();
  void release(u32 handle) { used_[handle] = false; }

 private:
  const char* what_;
  u32 first_;
  std::vector<bool> used_;
};

/// Set-up calls may come from any thread, one at a time. The device must outlive the objects that it created.
class ModelCassini final : public CassiniDevice {
 public:
  /// Service 1 is the default service, without restrictions. Service 2 is restricted to a network of its own.
  static constexpr u32 kDefaultService = cxi::kDefaultService, kRestrictedService = 2;
  static constexpr u16 kDefaultVni = 1, kRestrictedVni = 10;

  /// The first GPU reaches the queues, and runs the DMA agent or the device itself; `gpus` may be empty.
  /// `on_thread`: for Engine::kernel_on_cpu.
  ModelCassini(const ModelConfig& config, std::string name, std::vector<std::shared_ptr<gpu::Gpu>> gpus = {},
               const ServeOnThread& on_thread = serve_with_one_lane());
  ~ModelCassini() override;

  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Limits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) override;
  [[nodiscard]] std::unique_ptr<Endpoint> open(u32 service) override;
  [[nodiscard]] const u32* alive(Initiator initiator) override;
  [[nodiscard]] nlohmann::ordered_json counters() override;

  [[nodiscard]] const ModelConfig& config() const { return shared_.config; }
  [[nodiscard]] bool counts_on_request() const {
    return config().write_back == ModelConfig::WriteBack::on_request;
  }
  [[nodiscard]] u64 injected(model::Fault f) {
    const std::scoped_lock lock(mutex_);
    engine_->refresh();
    return shared_.faults.counted(f);
  }
  /// Does one round, for a device without a thread of its own; true if there was work.
  bool poll() { return engine_->poll(); }

 private:
  friend class ModelEndpoint;
  friend class ModelMemory;
  friend class ModelEventQueue;
  friend class ModelCommandQueue;
  friend class ModelCounter;
  friend class ModelPortalsEntry;

  [[nodiscard]] const std::shared_ptr<gpu::Gpu>& gpu() const { return gpus_.empty() ? none_ : gpus_.front(); }
  [[nodiscard]] bool served_by_gpu() const { return shared_.config.engine == ModelConfig::Engine::gpu; }
  [[nodiscard]] bool reaches_gpu_memory() const { return agent_ != nullptr || served_by_gpu(); }
  /// Where the engine reaches a region.
  [[nodiscard]] u8* reach(const Region& r) const { return served_by_gpu() ? r.device() : r.host(); }
  [[nodiscard]] QueuePlace place_of(const Mapped& m) const { return {reach(m.region()), m.iova()}; }
  /// Pages that a GPU initiator writes to and the engine takes values from: a kernel cannot take a value out
  /// of host memory in one access.
  [[nodiscard]] Region pages_of_initiator(u64 bytes) const {
    return served_by_gpu() ? Region(Place::gpu, bytes, gpu()) : registers(bytes);
  }
  /// Memory of the device itself, which the first GPU also reaches.
  [[nodiscard]] Region registers(u64 bytes) const {
    return Region(gpu() ? Place::pinned : Place::pageable, bytes, gpu());
  }
  void require_reachable(Place place, const char* what) const;

  ModelShared shared_;
  const std::string name_;
  const std::vector<std::shared_ptr<gpu::Gpu>> gpus_;
  const std::shared_ptr<gpu::Gpu> none_;
  Region alive_;
  SoftwareAddressSpace space_;
  std::unique_ptr<model::DmaAgent> agent_;
  std::unique_ptr<EngineBase> engine_;
  std::recursive_mutex mutex_;  // set-up calls
  Handles transmit_queues_, target_queues_, event_queues_, counters_, entries_, memories_, contexts_,
      profiles_, pids_;
  u32 queues_created_ = 0;
  std::unique_ptr<model::DeviceThread> thread_;  // last, because the thread uses all members above
};

}  // namespace doorbell::cxi
