// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software NVMe controller behind the ControllerInterface: a register page, device threads, media.
#pragma once

#include <memory>
#include <vector>

#include "model/device_thread.hpp"
#include "nvme/controller_interface.hpp"
#include "nvme/model/admin.hpp"
#include "nvme/model/kernel_service.hpp"
#include "nvme/model/thread_service.hpp"

namespace doorbell::nvme {

class ModelController final : public ControllerInterface {
 public:
  /// `gpu` may be null; with a GPU, both sides can reach the register page and GPU memory.
  ModelController(const ModelConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~ModelController() override;

  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] u32 read32(u32 offset) override;
  [[nodiscard]] u64 read64(u32 offset) override;
  void write32(u32 offset, u32 value) override;
  void write64(u32 offset, u64 value) override;
  [[nodiscard]] AddressSpace& address_space() override { return space_; }
  [[nodiscard]] u32* cpu_register(u64 offset) override;
  [[nodiscard]] u32* gpu_register(u64 offset) override;
  [[nodiscard]] bool moves_data() const override { return shared_.config.media != ModelConfig::Media::null; }
  [[nodiscard]] bool scratch() const override { return !shared_.media.foreign(); }
  [[nodiscard]] std::string image() const override { return shared_.config.path; }
  [[nodiscard]] nlohmann::ordered_json counters() override;

  [[nodiscard]] const ModelConfig& config() const { return shared_.config; }
  [[nodiscard]] u64 injected(model::Fault f) {
    (void)io_->totals();  // a kernel's counts are fetched
    return shared_.faults.counted(f);
  }

 private:
  void check_offset(u64 offset, u64 bytes) const;
  void serve_by_threads();
  void serve_by_kernel();
  bool poll_registers();
  void enable();

  std::string name_;
  ModelShared shared_;
  SoftwareAddressSpace space_;
  std::shared_ptr<gpu::Gpu> gpu_;
  Region registers_;
  std::unique_ptr<model::DmaAgent> agent_;
  std::unique_ptr<IoService> io_;
  KernelService* kernel_ = nullptr;              ///< io_, if it is one
  std::unique_ptr<model::DmaEngine> admin_dma_;  ///< with kernel_: else the first engine's
  std::unique_ptr<AdminProcessor> admin_;
  u32 cc_ = 0;
  std::atomic<u32> cc_served_{0};
  bool gone_ = false;
  u32 rounds_ = 0;
  std::vector<std::unique_ptr<model::DeviceThread>>
      threads_;  // last, because the threads use all members above
};

}  // namespace doorbell::nvme
