// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "pci/vfio.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace {

constexpr u32 kBars = 6;

std::unique_ptr<VfioConnection> connect(const Function& f, VfioInterface interface) {
  const bool group = interface == VfioInterface::group ||
                     (interface == VfioInterface::automatic &&
                      (present("/dev/vfio/" + f.iommu_group) || !present("/dev/iommu")));
  return group ? connect_group(f) : connect_iommufd(f);
}

vfio_region_info region_info(const Function& f, int device, u32 index) {
  vfio_region_info info = {};
  info.argsz = sizeof info;
  info.index = index;
  if (ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &info) != 0)
    throw Error(fmt::format("{}: region {}", f.address, index), reason(errno));
  return info;
}

void check_config_access(const Function& f, u32 offset, ssize_t done, u32 bytes) {
  if (done == static_cast<ssize_t>(bytes)) return;
  throw Error(fmt::format("{}: configuration space at {:#x}", f.address, offset),
              done < 0 ? reason(errno) : fmt::format("{} of {} bytes", done, bytes));
}

}  // namespace

void refuse_open(const Function& f, const std::string& file, int error) {
  const std::string what = fmt::format("{}: opening {}", f.address, file);
  if (error == EACCES || error == EPERM)
    throw Error(what, "this user may not", fmt::format("sudo chown $USER {}, or run as root", file));
  if (error == EBUSY)
    throw Error(what, "another program has it open",
                fmt::format("end it first; 'sudo fuser -v {}' names it", file));
  if (error == ENOENT || error == ENXIO || error == ENODEV)
    throw Error(what, "the kernel offers no such file",
                "sudo modprobe vfio-pci; doorbell doctor says what else is missing");
  throw Error(what, reason(error));
}

std::string unsafe_interrupts(const std::string& module) {
  return "if dmesg says that interrupts are not remapped: switch that on in the firmware set-up (x2APIC, interrupt "
         "remapping), or trust the device with modprobe " +
         module + " allow_unsafe_interrupts=1";
}

BarMapping::~BarMapping() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

VfioFunction::VfioFunction(const std::string& address, VfioInterface interface, std::shared_ptr<gpu::Gpu> gpu)
    : function_(read_function(address)),
      connection_(connect(function_, interface)),
      space_(*connection_, function_.address, std::move(gpu)) {
  vfio_device_info info = {};
  info.argsz = sizeof info;
  if (ioctl(connection_->device(), VFIO_DEVICE_GET_INFO, &info) != 0)
    throw Error(function_.address, fmt::format("VFIO_DEVICE_GET_INFO: {}", reason(errno)));
  watch_requests();
  enable();
}

VfioFunction::~VfioFunction() = default;

void VfioFunction::enable() const {
  u16 command = 0;
  read_config(PCI_COMMAND, &command, sizeof command);
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER;
  write_config(PCI_COMMAND, &command, sizeof command);
}

void VfioFunction::watch_requests() {
  request_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (request_.get() < 0) throw Error(function_.address, fmt::format("eventfd: {}", reason(errno)));
  alignas(vfio_irq_set) u8 buffer[sizeof(vfio_irq_set) + sizeof(int)] = {};
  vfio_irq_set set = {};
  set.argsz = sizeof buffer;
  set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set.index = VFIO_PCI_REQ_IRQ_INDEX;
  set.count = 1;
  const int fd = request_.get();
  std::memcpy(buffer, &set, sizeof set);
  std::memcpy(buffer + sizeof set, &fd, sizeof fd);
  if (ioctl(connection_->device(), VFIO_DEVICE_SET_IRQS, buffer) != 0)
    throw Error(function_.address, fmt::format("asking for notice of its removal: {}", reason(errno)));
}

bool VfioFunction::leaving() {
  if (leaving_.load(std::memory_order_relaxed)) return true;
  u64 times = 0;
  if (::read(request_.get(), &times, sizeof times) != sizeof times) return false;
  leaving_.store(true, std::memory_order_relaxed);
  return true;
}

BarMapping VfioFunction::map_bar(u32 index) const {
  const std::string what = fmt::format("{}: BAR {}", function_.address, index);
  if (index >= kBars) throw Error(what, "there are BARs 0 to 5");
  const vfio_region_info info = region_info(function_, connection_->device(), index);
  if (info.size == 0) throw Error(what, "the function has none");
  if ((info.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0)
    throw Error(what, "the kernel lets no program map it", "dmesg may say why");
  void* const p = mmap(nullptr, info.size, PROT_READ | PROT_WRITE, MAP_SHARED, connection_->device(),
                       static_cast<off_t>(info.offset));
  if (p == MAP_FAILED)
    throw Error(what, fmt::format("mapping {} bytes: {}", info.size, reason(errno)),
                errno == EINVAL ? "kernels before 4.16 map no BAR that holds the MSI-X table" : "");
  return {static_cast<u8*>(p), info.size};
}

void VfioFunction::read_config(u32 offset, void* to, u32 bytes) const {
  const vfio_region_info config = region_info(function_, connection_->device(), VFIO_PCI_CONFIG_REGION_INDEX);
  check_config_access(function_, offset,
                      pread(connection_->device(), to, bytes, static_cast<off_t>(config.offset + offset)),
                      bytes);
}

void VfioFunction::write_config(u32 offset, const void* from, u32 bytes) const {
  const vfio_region_info config = region_info(function_, connection_->device(), VFIO_PCI_CONFIG_REGION_INDEX);
  check_config_access(function_, offset,
                      pwrite(connection_->device(), from, bytes, static_cast<off_t>(config.offset + offset)),
                      bytes);
}

void VfioFunction::reset() const {
  if (ioctl(connection_->device(), VFIO_DEVICE_RESET) != 0)
    throw Error(fmt::format("{}: resetting it", function_.address), reason(errno),
                errno == ENOTTY || errno == EINVAL ? "it knows no reset of its own" : "");
  enable();
}

}  // namespace doorbell::pci
