// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A ConnectX NIC whose queues doorbell itself writes and rings, from a CPU or a GPU. Not yet run on hardware.
// hardware.
#pragma once

#include <memory>

#include "rdma/mlx5dv/queue_pair.hpp"

namespace doorbell::rdma {

class Mlx5Nic final : public NicDevice {
 public:
  /// Throws doorbell::Error: ExitCode::absent without the libraries or without such a device.
  explicit Mlx5Nic(const VerbsConfig& config, std::shared_ptr<gpu::Gpu> gpu = nullptr);

  [[nodiscard]] std::string kind() const override { return verbs_->kind(); }
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] Provider provider() const override { return Provider::mlx5; }
  [[nodiscard]] NicLimits limits() const override;
  [[nodiscard]] Region allocate(Place place, u64 bytes) override { return verbs_->allocate(place, bytes); }
  [[nodiscard]] std::unique_ptr<MemoryRegion> register_memory(const Region& region, u32 access) override {
    return verbs_->register_memory(region, access);
  }
  [[nodiscard]] std::unique_ptr<QueuePairObject> create_queue_pair(const QueuePairShape& shape) override;
  [[nodiscard]] const u32* alive(Initiator initiator) override { return verbs_->alive(initiator); }
  [[nodiscard]] nlohmann::ordered_json counters() override { return verbs_->counters(); }

 private:
  std::shared_ptr<Mlx5Shared> shared_;
  std::unique_ptr<VerbsNic> verbs_;
};

}  // namespace doorbell::rdma
