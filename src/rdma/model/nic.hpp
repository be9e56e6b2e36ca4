// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software NIC behind the Nic interface: doorbell words, registered memory, device threads.
#pragma once

#include <map>

#include "model/device_thread.hpp"
#include "rdma/model/engine_base.hpp"
#include "rdma/model/shape.hpp"

namespace doorbell::rdma {

class ModelQueuePair;

/// Set-up calls may come from any thread, one at a time. The device must outlive the objects that it created.
class ModelNic final : public Nic {
 public:
  /// `gpu` may be null; with a GPU, both sides can reach doorbells and GPU memory.
  ModelNic(const ModelConfig& config, Provider provider, std::string name,
           std::shared_ptr<gpu::Gpu> gpu = nullptr);
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
  [[nodiscard]] u64 injected(model::Fault f) const { return shared_.faults.counted(f); }
  /// Does one round of every engine, for devices without threads of their own. True if there was work.
  bool poll();

 private:
  friend class ModelQueuePair;
  friend class ModelMemoryRegion;

  static constexpr u64 kRecordBytes = 4096;  ///< for one queue pair

  /// The doorbell words of one queue pair.
  struct Registers {
    u64 offset = 0;
    u32 slot = 0;
  };
  [[nodiscard]] Registers claim_registers();
  void release_registers(u32 slot);
  [[nodiscard]] u32 new_qpn();
  void forget(u32 index, Iova iova);
  EngineBase& place(ModelQueuePair& q, u32 remote_qpn);
  void move(ModelQueuePair& q, u32 engine);

  std::string name_;
  Provider provider_;
  const FormatShape& format_;
  ModelShared shared_;
  SoftwareAddressSpace space_;
  std::shared_ptr<gpu::Gpu> gpu_;
  Region registers_;
  std::unique_ptr<model::DmaAgent> agent_;
  std::vector<std::unique_ptr<EngineBase>> engines_;
  std::recursive_mutex mutex_;  // set-up calls
  std::map<u32, ModelQueuePair*> queue_pairs_;
  std::vector<bool> slots_;
  std::vector<u32> connected_;  // for each engine, its queue pairs that are connected
  u32 next_qpn_ = 0x40;
  u32 created_ = 0;
  std::vector<std::unique_ptr<model::DeviceThread>> threads_;  // last, because they use all members above
};

}  // namespace doorbell::rdma
