// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The older interface: /dev/vfio/GROUP in a container with a type 1 IOMMU.
#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "pci/vfio.hpp"
#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace {

constexpr char kContainer[] = "/dev/vfio/vfio";
// For kernels before 5.5, which do not report ranges: an IOMMU of 39 bits, the least on x86, without the
// interrupt window.
constexpr IovaRange kUnsaid = {u64{1} << 32, (u64{1} << 39) - 1};

class GroupConnection final : public VfioConnection {
 public:
  explicit GroupConnection(const Function& f) {
    open_container(f);
    open_group(f);
    const int container = container_.get();
    if (ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container) != 0)
      throw Error(f.address, fmt::format("putting its group into a container: {}", reason(errno)));
    if (ioctl(container_.get(), VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) refuse_iommu(f, errno);
    device_ = Descriptor(ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, f.address.c_str()));
    if (device_.get() < 0) refuse_open(f, fmt::format("the function in group {}", f.iommu_group), errno);
  }

  [[nodiscard]] std::string interface() const override { return "group"; }
  [[nodiscard]] int device() const override { return device_.get(); }

  [[nodiscard]] std::vector<IovaRange> usable() override {
    if (usable_.empty()) usable_ = ask_usable();
    return usable_;
  }

  [[nodiscard]] int map(Iova iova, const void* host, u64 bytes, Access access) override {
    vfio_iommu_type1_dma_map request = {};
    request.argsz = sizeof request;
    request.flags = (allows(access, Access::read) ? VFIO_DMA_MAP_FLAG_READ : 0u) |
                    (allows(access, Access::write) ? VFIO_DMA_MAP_FLAG_WRITE : 0u);
    request.vaddr = reinterpret_cast<u64>(host);
    request.iova = iova;
    request.size = bytes;
    return ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &request) == 0 ? 0 : errno;
  }

  [[nodiscard]] int map_dmabuf(Iova, int, u64, Access) override { return ENOSYS; }

  void unmap(Iova iova, u64 bytes) noexcept override {
    vfio_iommu_type1_dma_unmap request = {};
    request.argsz = sizeof request;
    request.iova = iova;
    request.size = bytes;
    ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &request);
  }

 private:
  void open_container(const Function& f) {
    container_ = Descriptor(::open(kContainer, O_RDWR | O_CLOEXEC));
    if (container_.get() < 0) refuse_open(f, kContainer, errno);
    if (ioctl(container_.get(), VFIO_GET_API_VERSION) != VFIO_API_VERSION)
      throw Error(f.address, "the kernel speaks another version of VFIO", "doorbell knows version 0");
    if (ioctl(container_.get(), VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1)
      throw Error(f.address, "the kernel's VFIO has no type 1 IOMMU", "sudo modprobe vfio_iommu_type1");
  }

  void open_group(const Function& f) {
    const std::string node = "/dev/vfio/" + f.iommu_group;
    group_ = Descriptor(::open(node.c_str(), O_RDWR | O_CLOEXEC));
    if (group_.get() < 0) {
      const int error = errno;
      if (error == ENOENT && present("/dev/vfio/noiommu-" + f.iommu_group))
        throw Error(f.address, "VFIO runs without an IOMMU (no-IOMMU mode)",
                    "switch the IOMMU on: without one the device could write anywhere in memory");
      refuse_open(f, node, error);
    }
    vfio_group_status status = {};
    status.argsz = sizeof status;
    if (ioctl(group_.get(), VFIO_GROUP_GET_STATUS, &status) != 0)
      throw Error(f.address, fmt::format("{}: {}", node, reason(errno)));
    if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0)
      throw Error(f.address,
                  fmt::format("other drivers hold members of its IOMMU group {}: {}", f.iommu_group,
                              fmt::join(foreign_members(f), ", ")),
                  fmt::format("doorbell bind --group {}", f.address));
  }

  [[noreturn]] static void refuse_iommu(const Function& f, int error) {
    throw Error(f.address, fmt::format("the kernel sets up no IOMMU for its group: {}", reason(error)),
                error == EPERM ? unsafe_interrupts("vfio_iommu_type1") : "dmesg may say why");
  }

  [[nodiscard]] std::vector<IovaRange> ask_usable() const {
    vfio_iommu_type1_info info = {};
    info.argsz = sizeof info;
    if (ioctl(container_.get(), VFIO_IOMMU_GET_INFO, &info) != 0) return {kUnsaid};
    // The first call returns the size that is needed; the second call has room for all of it.
    std::vector<u8> buffer(std::max<std::size_t>(info.argsz, sizeof info));
    info.argsz = static_cast<u32>(buffer.size());
    std::memcpy(buffer.data(), &info, sizeof info);
    if (ioctl(container_.get(), VFIO_IOMMU_GET_INFO, buffer.data()) != 0) return {kUnsaid};
    std::memcpy(&info, buffer.data(), sizeof info);
    if ((info.flags & VFIO_IOMMU_INFO_CAPS) == 0) return {kUnsaid};
    for (u32 at = info.cap_offset;
         at != 0 && at + sizeof(vfio_iommu_type1_info_cap_iova_range) <= buffer.size();) {
      vfio_iommu_type1_info_cap_iova_range cap;
      std::memcpy(&cap, buffer.data() + at, sizeof cap);
      if (cap.header.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) {
        std::vector<IovaRange> ranges;
        std::size_t from = at + sizeof cap;
        for (u32 i = 0; i < cap.nr_iovas && from + sizeof(vfio_iova_range) <= buffer.size(); ++i) {
          vfio_iova_range range;
          std::memcpy(&range, buffer.data() + from, sizeof range);
          ranges.push_back({range.start, range.end});
          from += sizeof range;
        }
        return ranges;
      }
      at = cap.header.next;
    }
    return {kUnsaid};
  }

  // Closed in the opposite order: the device, its group, then the container with the mappings.
  Descriptor container_;
  Descriptor group_;
  Descriptor device_;
  std::vector<IovaRange> usable_;
};

}  // namespace

std::unique_ptr<VfioConnection> connect_group(const Function& f) {
  return std::make_unique<GroupConnection>(f);
}

}  // namespace doorbell::pci
