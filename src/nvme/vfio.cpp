// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/vfio.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/memory_order.hpp>
#include <fmt/format.h>

#include "nvme/settings.hpp"
#include "options/spec.hpp"
#include "pci/usage.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace fs = std::filesystem;
using options::Kind;
using pci::VfioInterface;

namespace {

constexpr char kLong[] = "vfio:";
constexpr u32 kQemuVendor = 0x1b36;
constexpr u32 kQemuController = 0x0010;
constexpr u64 kBarPage = 4096;

bool names_nvme(std::string_view spec) {
  if (spec.starts_with("/dev/")) spec.remove_prefix(5);
  return spec.starts_with("nvme") && spec.size() > 4 && spec[4] >= '0' && spec[4] <= '9';
}

std::string resolve(const std::string& name, const fs::path& root) {
  if (const auto address = pci::parse_address(name)) return *address;
  if (const auto address = pci::address_of_nvme(name, root)) return *address;
  if (names_nvme(name))
    throw Error(fmt::format("controller '{}'", name), "the kernel has no such NVMe controller on a PCI bus",
                "doorbell list shows those it has; one that doorbell bind took has its PCI address only",
                ExitCode::absent);
  throw Error(fmt::format("controller '{}'", name), "it is no PCI address",
              "give one such as 0000:01:00.0; doorbell list shows them");
}

}  // namespace

options::OptionTable vfio_keys() {
  options::OptionTable t;
  t.add({.name = "interface",
         .kind = Kind::choice,
         .default_text = "auto",
         .choices = {"auto", "group", "iommufd"},
         .help = "which of the kernel's interfaces; auto is group unless the kernel has only iommufd"});
  return t;
}

bool is_vfio_spec(const std::string& spec) {
  return spec.starts_with(kLong) || pci::parse_address(spec) || names_nvme(spec);
}

VfioSpec parse_vfio_spec(const std::string& spec, const fs::path& root, const std::string& controller) {
  if (!spec.starts_with(kLong)) return {resolve(spec, root)};
  const std::string rest = spec.substr(sizeof kLong - 1);
  const auto comma = rest.find(',');
  const std::string keys = comma == std::string::npos ? "vfio" : "vfio:" + rest.substr(comma + 1);
  const std::string interface =
      options::parse_spec(controller + " vfio", vfio_keys(), keys).text("interface");
  return {resolve(rest.substr(0, comma), root), interface == "group"     ? VfioInterface::group
                                                : interface == "iommufd" ? VfioInterface::iommufd
                                                                         : VfioInterface::automatic};
}

void require_ready(const std::string& address, const fs::path& root) {
  const pci::Function f = pci::read_function(address, root);
  if (!f.is_nvme())
    throw Error(address, fmt::format("it is no NVMe controller (class {:#08x})", f.class_code),
                "doorbell list shows the NVMe controllers");
  if (f.driver != pci::kVfioDriver) {
    pci::require_unused(address, root);
    pci::require_iommu(f);
    throw Error(address,
                f.driver.empty() ? std::string("no driver holds it")
                                 : fmt::format("the kernel's driver {} holds it", f.driver),
                fmt::format("sudo doorbell bind {}", address));
  }
  pci::require_iommu(f);
  if (const auto others = pci::foreign_members(f, root); !others.empty())
    throw Error(address,
                fmt::format("its IOMMU group {} has members that other drivers hold: {}", f.iommu_group,
                            fmt::join(others, ", ")),
                fmt::format("sudo doorbell bind --group {}", address));
}

VfioController::VfioController(const std::string& address, VfioInterface interface,
                               std::shared_ptr<gpu::Gpu> gpu)
    : function_(address, interface, gpu), bar_(function_.map_bar(0)), gpu_(std::move(gpu)) {
  if (bar_.bytes() < 2 * kBarPage)
    throw Error(address, fmt::format("its BAR 0 has {} bytes", bar_.bytes()),
                "an NVMe controller has 8 KiB at least");
}

VfioController::~VfioController() {
  if (gpu_bar_ != nullptr) gpu_->unregister_host(bar_.base());
}

std::string VfioController::kind() const {
  const pci::Function& f = function_.function();
  return f.vendor == kQemuVendor && f.device == kQemuController ? "emulated" : "hardware";
}

u32* VfioController::cpu_register(u64 offset) {
  if (offset % 4 != 0 || offset > bar_.bytes() - 4)
    throw Error(fmt::format("register {:#x} of {}", offset, name()),
                fmt::format("BAR 0 has {:#x} bytes and takes aligned accesses", bar_.bytes()),
                "use fewer queues: each has two doorbells there");
  return reinterpret_cast<u32*>(bar_.base() + offset);
}

u32 VfioController::read32(u32 offset) {
  return load_acquire(cpu_register(offset));
}

// 64-bit registers take two 32-bit accesses, the low one first; not every controller takes one of 64.
u64 VfioController::read64(u32 offset) {
  const u64 low = read32(offset);
  return u64{read32(offset + 4)} << 32 | low;
}

void VfioController::write32(u32 offset, u32 value) {
  // The release orders what was written to memory, such as zeroed queues, before the register.
  store_release(cpu_register(offset), value);
}

void VfioController::write64(u32 offset, u64 value) {
  write32(offset, static_cast<u32>(value));
  write32(offset + 4, static_cast<u32>(value >> 32));
}

u32* VfioController::gpu_register(u64 offset) {
  const u64 at = static_cast<u64>(reinterpret_cast<u8*>(cpu_register(offset)) - bar_.base());
  if (!gpu_) return nullptr;
  const std::scoped_lock lock(mutex_);
  if (gpu_bar_ == nullptr) {
    // The kernel fills a BAR's page tables at the first touch, and the GPU driver looks only at what is
    // there.
    for (u64 page = 0; page < bar_.bytes(); page += kBarPage)
      (void)load_relaxed(reinterpret_cast<u32*>(bar_.base() + page));
    gpu_bar_ = static_cast<u8*>(gpu_->register_host(bar_.base(), bar_.bytes(), true));
  }
  return reinterpret_cast<u32*>(gpu_bar_ + at);
}

BackendStatus vfio_status() {
  if (!present("/dev/vfio/vfio") && !present("/dev/vfio/devices"))
    return {false, "no /dev/vfio: sudo modprobe vfio-pci"};
  const std::size_t groups = names_in("/sys/kernel/iommu_groups").size();
  if (groups == 0)
    return {false, "no IOMMU: switch it on in the firmware set-up and on the kernel command line"};
  std::size_t ready = 0;
  for (const std::string& name : names_in(fs::path("/sys/bus/pci/drivers") / pci::kVfioDriver))
    ready += pci::parse_address(name) && pci::read_function(name).is_nvme() ? 1u : 0u;
  return {true, fmt::format("{} IOMMU groups, {} NVMe controller{} bound to vfio-pci", groups, ready,
                            ready == 1 ? "" : "s")};
}

std::unique_ptr<ControllerInterface> open_vfio(const DeviceRequest& request) {
  const VfioSpec spec = parse_vfio_spec(request.spec, "/", setting::controller);
  require_ready(spec.address);
  return std::make_unique<VfioController>(spec.address, spec.interface, request.gpu);
}

}  // namespace doorbell::nvme
