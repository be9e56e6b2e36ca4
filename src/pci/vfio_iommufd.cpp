// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The newer interface: /dev/vfio/devices/vfioN and /dev/iommu.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>

#include "pci/vfio.hpp"
#include "pci/vfio_kernel.hpp"
#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace {

constexpr char kIommufd[] = "/dev/iommu";

u32 flags_of(Access access) {
  return kernel::kMapFixedIova | (allows(access, Access::read) ? kernel::kMapReadable : 0) |
         (allows(access, Access::write) ? kernel::kMapWriteable : 0);
}

class IommufdConnection final : public VfioConnection {
 public:
  explicit IommufdConnection(const Function& f) {
    const std::vector<std::string> names = names_in(sysfs_folder(f.address) / "vfio-dev");
    const std::string node = "/dev/vfio/devices/" + (names.empty() ? "vfio0" : names.front());
    if (names.empty() || !present(node) || !present(kIommufd))
      throw Error(
          f.address, "this kernel has no iommufd, or makes no device files for it",
          "that needs Linux 6.6 with CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV; use interface=group");
    iommufd_ = Descriptor(::open(kIommufd, O_RDWR | O_CLOEXEC));
    if (iommufd_.get() < 0) refuse_open(f, kIommufd, errno);
    device_ = Descriptor(::open(node.c_str(), O_RDWR | O_CLOEXEC));
    if (device_.get() < 0) refuse_open(f, node, errno);

    kernel::VfioBindIommufd bind;
    bind.iommufd = iommufd_.get();
    if (ioctl(device_.get(), kernel::kVfioBindIommufd, &bind) != 0) {
      if (errno == EBUSY || errno == EINVAL) refuse_open(f, node, EBUSY);
      refuse(f, "binding it to iommufd", errno);
    }
    kernel::IoasAlloc alloc;
    if (ioctl(iommufd_.get(), kernel::kIoasAlloc, &alloc) != 0)
      refuse(f, "an address space of iommufd", errno);
    ioas_ = alloc.ioas_id;
    kernel::VfioAttachTable attach;
    attach.table_id = ioas_;
    if (ioctl(device_.get(), kernel::kVfioAttachTable, &attach) != 0)
      refuse(f, "attaching it to an address space of iommufd", errno);
  }

  [[nodiscard]] std::string interface() const override { return "iommufd"; }
  [[nodiscard]] int device() const override { return device_.get(); }

  [[nodiscard]] std::vector<IovaRange> usable() override {
    if (usable_.empty()) usable_ = ask_usable();
    return usable_;
  }

  [[nodiscard]] int map(Iova iova, const void* host, u64 bytes, Access access) override {
    kernel::IoasMap request;
    request.flags = flags_of(access);
    request.ioas_id = ioas_;
    request.user_va = reinterpret_cast<u64>(host);
    request.length = bytes;
    request.iova = iova;
    return ioctl(iommufd_.get(), kernel::kIoasMap, &request) == 0 ? 0 : errno;
  }

  [[nodiscard]] int map_dmabuf(Iova iova, int fd, u64 bytes, Access access) override {
    kernel::IoasMapFile request;
    request.flags = flags_of(access);
    request.ioas_id = ioas_;
    request.fd = fd;
    request.length = bytes;
    request.iova = iova;
    return ioctl(iommufd_.get(), kernel::kIoasMapFile, &request) == 0 ? 0 : errno;
  }

  void unmap(Iova iova, u64 bytes) noexcept override {
    kernel::IoasUnmap request;
    request.ioas_id = ioas_;
    request.iova = iova;
    request.length = bytes;
    ioctl(iommufd_.get(), kernel::kIoasUnmap, &request);
  }

 private:
  [[noreturn]] static void refuse(const Function& f, const char* step, int error) {
    throw Error(
        f.address, fmt::format("{}: {}", step, reason(error)),
        error == EPERM ? unsafe_interrupts("iommufd") : "interface=group may work; dmesg may say why");
  }

  [[nodiscard]] std::vector<IovaRange> ask_usable() const {
    kernel::IoasIovaRanges request;
    request.ioas_id = ioas_;
    std::vector<kernel::IovaRange> ranges(16);
    for (;;) {
      request.count = static_cast<u32>(ranges.size());
      request.ranges = reinterpret_cast<u64>(ranges.data());
      const bool done = ioctl(iommufd_.get(), kernel::kIoasIovaRanges, &request) == 0;
      if (!done && (errno != EMSGSIZE || request.count <= ranges.size())) return {};
      ranges.resize(request.count);
      if (done) break;
    }
    std::vector<IovaRange> usable;
    usable.reserve(ranges.size());
    for (const kernel::IovaRange& range : ranges) usable.push_back({range.start, range.last});
    return usable;
  }

  // Closed in the opposite order: the device before the address space to which it is attached.
  Descriptor iommufd_;
  Descriptor device_;
  u32 ioas_ = 0;
  std::vector<IovaRange> usable_;
};

}  // namespace

std::unique_ptr<VfioConnection> connect_iommufd(const Function& f) {
  return std::make_unique<IommufdConnection>(f);
}

}  // namespace doorbell::pci
