// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The model controller as a PCI function that a vfio-user server serves: its registers by message, its
// doorbells in a page that clients may share.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "nvme/model/controller.hpp"
#include "system/descriptor.hpp"
#include "vfio_user/device.hpp"

namespace doorbell::nvme {

class ModelFunction final : public vfio_user::Device, private InterruptSink {
 public:
  /// BAR 0: registers, then a page of doorbells.
  static constexpr u64 kBarBytes = 0x4000, kDoorbellBytes = 0x1000;

  /// `share_doorbells`: clients may map them; otherwise each is a message. Throws Error, also for doorbells
  /// that do not lie in one page.
  ModelFunction(const ModelConfig& config, const std::string& name, bool share_doorbells);

  [[nodiscard]] ModelController& model() { return *model_; }
  /// How often a driver said that it shuts the controller down (CC.SHN).
  [[nodiscard]] u64 shutdowns() const { return shutdowns_.load(std::memory_order_relaxed); }

  // Device
  [[nodiscard]] vfio_user::PciIdentity identity() const override;
  [[nodiscard]] u32 vectors() const override { return vectors_; }
  [[nodiscard]] vfio_user::Bar0 bar0() const override;
  [[nodiscard]] SoftwareAddressSpace& space() override { return model_->memory(); }
  [[nodiscard]] int read(u64 offset, std::span<u8> to) override;
  [[nodiscard]] int write(u64 offset, std::span<const u8> from) override;
  [[nodiscard]] Way way_of_write(u64 offset, std::span<const u8> from) const override;
  void reset() override { model_->reset(); }
  void change_memory(const std::function<void()>& change) override { model_->change_memory(change); }
  void interrupt_by(vfio_user::Interrupts* interrupts) override {
    interrupts_.store(interrupts, std::memory_order_release);
  }
  void raise_again() override { model_->raise_interrupts_again(); }

 private:
  void raise(u16 vector) noexcept override {
    if (auto* const now = interrupts_.load(std::memory_order_acquire)) now->raise(vector);
  }
  [[nodiscard]] HostMemory registers();

  u32 vectors_;
  Descriptor doorbells_;  ///< a file as long as BAR 0 up to its doorbells' end, of which only they are used
  std::atomic<vfio_user::Interrupts*> interrupts_{nullptr};
  std::atomic<u64> shutdowns_{0};
  std::optional<ModelController> model_;
};

}  // namespace doorbell::nvme
