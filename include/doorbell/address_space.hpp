// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The memory that a device can reach: IOVA ranges mapped to Regions, with permissions. Host code only.
#pragma once

#include <doorbell/region.hpp>

#include <utility>

namespace doorbell {

/// An address as the device uses it, in bytes.
using Iova = u64;

/// The accesses that a mapping allows the device.
enum class Access : u32 {
  read = 1,        ///< the device reads the memory
  write = 2,       ///< the device writes it
  read_write = 3,  ///< both
};
/// True if `have` has every access of `want`.
[[nodiscard]] DOORBELL_HD constexpr bool allows(Access have, Access want) {
  return (static_cast<u32>(have) & static_cast<u32>(want)) == static_cast<u32>(want);
}

/// The mappings of one device, or of one process on it.
///
/// Thread rule: map and unmap may be called from any thread; the device may be running.
class AddressSpace {
 public:
  virtual ~AddressSpace() = default;
  /// Maps the whole region, contiguous in IOVA and aligned to 4 KiB at least. The region must outlive
  /// the mapping. Throws doorbell::Error when the space is full or the IOMMU refuses.
  [[nodiscard]] virtual Iova map(const Region& region, Access access) = 0;
  /// Takes back what map() returned; the device must have stopped using it.
  virtual void unmap(Iova iova) noexcept = 0;
  /// Memory that map() takes: any by default; some devices reach only what was made for them. With a
  /// GPU, host memory is reachable by it too.
  [[nodiscard]] virtual Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
    return Region(place, bytes, std::move(gpu));
  }
};

/// A region together with its mapping: unmapped, then freed, in that order.
class Mapped {
 public:
  /// Nothing mapped.
  Mapped() = default;
  /// Maps `region` in `space`, which must outlive this object. Throws as AddressSpace::map().
  Mapped(AddressSpace& space, Region region, Access access)
      : space_(&space), region_(std::move(region)), iova_(space.map(region_, access)) {}
  /// Memory of the space's own making: AddressSpace::allocate(), then map().
  Mapped(AddressSpace& space, Place place, u64 bytes, Access access, std::shared_ptr<gpu::Gpu> gpu = nullptr)
      : Mapped(space, space.allocate(place, bytes, std::move(gpu)), access) {}
  ~Mapped() { release(); }
  Mapped(Mapped&& o) noexcept : space_(o.space_), region_(std::move(o.region_)), iova_(o.iova_) {
    o.space_ = nullptr;
  }
  Mapped& operator=(Mapped&& o) noexcept {
    if (this != &o) {
      release();
      space_ = o.space_;
      region_ = std::move(o.region_);
      iova_ = o.iova_;
      o.space_ = nullptr;
    }
    return *this;
  }
  /// The memory; it stays this object's.
  [[nodiscard]] Region& region() { return region_; }
  /// Likewise, to read.
  [[nodiscard]] const Region& region() const { return region_; }
  /// The device's address of byte 0.
  [[nodiscard]] Iova iova() const { return iova_; }
  /// Ends the mapping early, so that the region may outlive the space. The device has stopped using it.
  void unmap() { release(); }

 private:
  void release() {
    if (space_ != nullptr) space_->unmap(iova_);
    space_ = nullptr;
  }
  AddressSpace* space_ = nullptr;
  Region region_;
  Iova iova_ = 0;
};

}  // namespace doorbell
