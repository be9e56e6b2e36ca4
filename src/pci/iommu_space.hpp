// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory that a device behind an IOMMU can reach.
#pragma once

#include <doorbell/address_space.hpp>

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace doorbell::pci {

/// IOVAs that the kernel lets a device use, including `last`.
struct IovaRange {
  Iova first = 0;
  Iova last = 0;
};

/// The kernel's calls that an IommuSpace makes; they return 0 or an errno.
class IommuMapper {
 public:
  virtual ~IommuMapper() = default;
  [[nodiscard]] virtual std::vector<IovaRange> usable() = 0;
  [[nodiscard]] virtual int map(Iova iova, const void* host, u64 bytes, Access access) = 0;
  /// ENOSYS: this interface maps no dma-buf; ENOTTY: this kernel maps no files.
  [[nodiscard]] virtual int map_dmabuf(Iova iova, int fd, u64 bytes, Access access) = 0;
  virtual void unmap(Iova iova, u64 bytes) noexcept = 0;
};

/// Hands out IOVAs upwards from 4 GiB (or lower if the IOMMU does not reach so far), with a gap behind each
/// range. An access past a region is thus a fault and does not reach another region. IOVAs that were given
/// back are used again only after all higher ones. Ranges are aligned to 2 MiB or 1 GiB, so that huge pages
/// stay huge in the IOMMU.
class IommuSpace final : public AddressSpace {
 public:
  /// `name`: the device, for messages. `gpu`: the GPU whose memory may be mapped; may be null. The mapper
  /// must outlive this object.
  IommuSpace(IommuMapper& mapper, std::string name, std::shared_ptr<gpu::Gpu> gpu = nullptr)
      : mapper_(mapper), name_(std::move(name)), gpu_(std::move(gpu)) {}

  [[nodiscard]] Iova map(const Region& region, Access access) override;
  void unmap(Iova iova) noexcept override;
  /// Host memory is ordinary memory: the IOMMU pins its pages, and the GPU registers them. Memory that a GPU
  /// driver allocates itself may have no pages that the kernel could pin.
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) override;

  [[nodiscard]] u64 mapped_bytes() const;

 private:
  [[nodiscard]] Iova find_room(u64 bytes);
  [[nodiscard]] int map_gpu(const Region& region, Iova iova, Access access);
  [[noreturn]] void refuse(int error, const Region& region, Iova iova) const;

  IommuMapper& mapper_;
  std::string name_;
  std::shared_ptr<gpu::Gpu> gpu_;
  mutable std::mutex mutex_;
  std::map<Iova, u64> mapped_;  // bytes by first IOVA
  u64 mapped_bytes_ = 0;
  Iova next_ = u64{1} << 32;
};

}  // namespace doorbell::pci
