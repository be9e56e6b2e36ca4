// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An NVMe controller on the PCI bus, driven through VFIO.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "nvme/backends.hpp"
#include "nvme/controller_interface.hpp"
#include "nvme/settings.hpp"
#include "options/option.hpp"
#include "pci/vfio.hpp"

namespace doorbell::nvme {

class VfioController final : public ControllerInterface {
 public:
  /// `gpu`: the GPU that will ring its doorbells or hold its memory; may be null.
  VfioController(const std::string& address, pci::VfioInterface interface,
                 std::shared_ptr<gpu::Gpu> gpu = nullptr);
  ~VfioController() override;

  /// QEMU's controller is another program's software, wherever it is plugged in.
  [[nodiscard]] std::string kind() const override;
  [[nodiscard]] std::string name() const override { return function_.function().address; }
  [[nodiscard]] u32 read32(u32 offset) override;
  [[nodiscard]] u64 read64(u32 offset) override;
  void write32(u32 offset, u32 value) override;
  void write64(u32 offset, u64 value) override;
  [[nodiscard]] AddressSpace& address_space() override { return function_.address_space(); }
  [[nodiscard]] u32* cpu_register(u64 offset) override;
  [[nodiscard]] u32* gpu_register(u64 offset) override;
  [[nodiscard]] bool leaving() override { return function_.leaving(); }

  [[nodiscard]] pci::VfioFunction& function() { return function_; }

 private:
  pci::VfioFunction function_;
  pci::BarMapping bar_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::mutex mutex_;
  u8* gpu_bar_ = nullptr;  // once asked for
};

/// A controller's name: "0000:01:00.0", "01:00.0", "/dev/nvme0", "/dev/nvme0n1", "nvme0" or
/// "vfio:ADDRESS[,KEY=VALUE...]".
struct VfioSpec {
  std::string address;
  pci::VfioInterface interface = pci::VfioInterface::automatic;
};
[[nodiscard]] bool is_vfio_spec(const std::string& spec);
/// `controller`: the setting that names the controller.
[[nodiscard]] VfioSpec parse_vfio_spec(const std::string& spec, const std::filesystem::path& root = "/",
                                       const std::string& controller = setting::controller);
/// The keys behind the address.
[[nodiscard]] options::OptionTable vfio_keys();

/// Throws, saying what to do, unless the function is an unused NVMe controller that is bound to vfio-pci with
/// all of its IOMMU group.
void require_ready(const std::string& address, const std::filesystem::path& root = "/");

[[nodiscard]] BackendStatus vfio_status();
[[nodiscard]] std::unique_ptr<ControllerInterface> open_vfio(const DeviceRequest& request);

}  // namespace doorbell::nvme
