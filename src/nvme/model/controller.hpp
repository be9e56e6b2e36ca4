// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software NVMe controller behind the ControllerInterface: a register page, device threads, media.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "model/device_thread.hpp"
#include "nvme/controller_interface.hpp"
#include "nvme/model/admin.hpp"
#include "nvme/model/kernel_service.hpp"
#include "nvme/model/thread_service.hpp"

namespace doorbell::nvme {

/// The ports that a model has if drivers of other processes use it.
struct ModelPorts {
  InterruptSink* interrupts = nullptr;  ///< null: completion queues are polled. It outlives the model
  u32 vectors = 0;                      ///< that queues may name, from 0
  /// Where registers and doorbells lie, zeroed, of register_bytes() at least; empty: in memory of the model's
  /// own.
  HostMemory registers;
  /// Others write to queues while the model reads them: each entry is copied before it is checked.
  bool foreign_memory = false;
};

class ModelController final : public ControllerInterface {
 public:
  /// `gpu` may be null; with a GPU, both sides can reach the register page and GPU memory.
  ModelController(const ModelConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu = nullptr,
                  ModelPorts ports = {});
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

  // For what stands between the model and another process. One thread at a time, none of the model's.

  /// Bytes of the BAR that are registers and doorbells.
  [[nodiscard]] static u64 register_bytes(const ModelConfig& config);
  [[nodiscard]] SoftwareAddressSpace& memory() { return space_; }
  /// Runs `change`, which maps and unmaps, while the model accesses no memory; then it finds its queues anew.
  /// A queue whose memory has gone is fatal (CSTS.CFS) once it is used. Throws what `change` throws.
  void change_memory(const std::function<void()>& change);
  /// As after power-on: registers, queues and features; what is stored and mapped stays.
  void reset();
  /// Other faults from now on, with the same seed; not of a model that is a kernel.
  void set_faults(const model::FaultRates& rates);
  /// Where each injected fault is reported from now on; null: nowhere. It outlives the controller.
  void log_faults(model::FaultLog* log) { shared_.faults.log_to(log); }
  /// It is pulled out: registers read as all ones, and it accesses nothing any more.
  void unplug() { (void)shared_.presence.leave(); }
  [[nodiscard]] bool gone() const { return shared_.presence.gone(); }
  /// Raises the vectors of queues that have unread entries: for a pin that is unmasked, or a vector that has
  /// just been connected.
  void raise_interrupts_again() { shared_.interrupts.again(); }

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
  /// Looks at CC. True if it has changed.
  bool take_configuration();
  void enable();
  void disable();
  /// Runs `work` on the thread of the admin queue, and waits for it. One caller at a time: others wait.
  void on_admin_thread(const std::function<void()>& work);
  std::mutex callers_;
  std::mutex changers_;  ///< of what threads do in the middle of a command, too: one caller at a time

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
  model::BetweenRounds set_up_{true};
  std::vector<std::unique_ptr<model::DeviceThread>>
      threads_;  // last, because the threads use all members above
};

}  // namespace doorbell::nvme
