// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software NIC behind the Nic interface: doorbell words, registered memory, device threads.
#pragma once

#include <map>

#include "model/device_thread.hpp"
#include "rdma/model/engine_thread.hpp"
#include "rdma/model/kernel_engines.hpp"
#include "rdma/model/shape.hpp"

namespace doorbell::rdma {

class ModelQueuePair;

/// Set-up calls may come from any thread, one at a time. The device must outlive the objects that it created.
class ModelNic final : public NicDevice {
 public:
  /// `gpu` may be null; with a GPU, both sides can reach doorbells and GPU memory.
  ModelNic(const ModelConfig& config, Provider provider, std::string name,
           std::shared_ptr<gpu::Gpu> gpu = nullptr)
      : ModelNic(config, provider, shape_of(provider), std::move(name), std::move(gpu)) {}
  /// With other engines for the provider's format, which must outlive the NIC.
  ModelNic(const ModelConfig& config, Provider provider, const FormatShape& format, std::string name,
           std::shared_ptr<gpu::Gpu> gpu);
  ~ModelNic() override;

  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] Provider provider() const override { return provider_; }
  [[nodiscard]] NicLimits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes) override;
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) override;
  [[nodiscard]] std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) override;
  [[nodiscard]] u64 queue_pair_bytes(const QueuePairShape& shape) const override;
  [[nodiscard]] const u32* alive(Initiator initiator) override;
  [[nodiscard]] nlohmann::ordered_json counters() override;

  [[nodiscard]] const ModelConfig& config() const { return shared_.config; }
  [[nodiscard]] u64 injected(model::Fault f) {
    const std::scoped_lock lock(mutex_);
    refresh();
    return shared_.faults.counted(f);
  }
  /// Does one round of every engine, for devices without threads of their own. True if there was work.
  bool poll();

 private:
  void refresh() {
    for (const auto& e : engines_) e->refresh();
  }
  friend class ModelQueuePair;
  friend class ModelMemoryRegion;

  static constexpr u64 kRecordBytes = 4096;  ///< for one queue pair
  static constexpr u32 kStateLine = 4;       ///< of its registers: the line behind its doorbells

  /// The doorbell words of one queue pair.
  struct Registers {
    u64 offset = 0;
    u32 slot = 0;
  };
  void serve_by_threads();
  void serve_by_kernel();
  [[noreturn]] void no_room(const EngineBase& engine) const;
  [[nodiscard]] Registers claim_registers();
  void release_registers(u32 slot);
  [[nodiscard]] u32 new_qpn();
  void forget(u32 index, Iova iova);
  EngineBase& place(ModelQueuePair& q, u32 remote_qpn);
  void move(ModelQueuePair& q, u32 engine);
  [[nodiscard]] bool served_by_gpu() const { return shared_.config.engine == ModelConfig::Engine::gpu; }
  /// Where the engines reach a region.
  [[nodiscard]] bool reaches_gpu_memory() const { return agent_ != nullptr || served_by_gpu(); }
  [[nodiscard]] u8* reach(const Region& r) const { return served_by_gpu() ? r.device() : r.host(); }
  /// Memory for the engines alone.
  [[nodiscard]] Region allocate_own(u64 bytes) const {
    return Region(served_by_gpu() ? Place::gpu : Place::pageable, bytes, gpu_);
  }
  /// Where doorbells and records lie. A kernel serves initiators on its own GPU only: a GPU cannot take a
  /// doorbell's value out of host memory in one access, which a CPU would need.
  [[nodiscard]] Place words_place() const {
    return served_by_gpu() ? Place::gpu : gpu_ ? Place::pinned : Place::pageable;
  }
  [[nodiscard]] Region& doorbells() { return served_by_gpu() ? gpu_doorbells_ : registers_; }

  std::string name_;
  Provider provider_;
  const FormatShape& format_;
  ModelShared shared_;
  SoftwareAddressSpace space_;
  std::shared_ptr<gpu::Gpu> gpu_;
  Region registers_;
  Region gpu_doorbells_;  ///< with a kernel: the doorbells, with the offsets of registers_
  std::unique_ptr<model::DmaAgent> agent_;
  std::unique_ptr<KernelEngines> kernel_;
  std::vector<std::unique_ptr<EngineBase>> engines_;
  std::vector<PolledEngine*> polled_;  ///< those on threads
  std::recursive_mutex mutex_;         // set-up calls
  std::map<u32, ModelQueuePair*> queue_pairs_;
  std::vector<bool> slots_;
  std::vector<u32> connected_;  // for each engine, its queue pairs that are connected
  u32 next_qpn_ = 0x40;
  u32 created_ = 0;
  std::vector<std::unique_ptr<model::DeviceThread>> threads_;  // last, because they use all members above
};

}  // namespace doorbell::rdma
