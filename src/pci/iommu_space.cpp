// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "pci/iommu_space.hpp"

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "memory/huge_pages.hpp"
#include "memory/ordinary_memory.hpp"
#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::pci {

namespace {

constexpr u64 kGap = kHuge2M;

u64 round_up(u64 n, u64 unit) {
  return (n + unit - 1) / unit * unit;
}

/// The sum, or the largest value on overflow: ranges may end with the last address.
u64 sum(u64 a, u64 b) {
  return a > ~u64{0} - b ? ~u64{0} : a + b;
}

std::string locked_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "no limit";
  return fmt::format("{} KiB", limit.rlim_cur / 1024);
}

}  // namespace

Iova IommuSpace::find_room(u64 bytes) {
  const u64 unit = bytes >= kHuge1G ? kHuge1G : kHuge2M;
  const std::vector<IovaRange> usable = mapper_.usable();
  // Begins where the last range ended. If no room is left there, begins again near the bottom, but never at
  // 0.
  for (const Iova from : {next_, Iova{kHuge2M}}) {
    for (const IovaRange& range : usable) {
      if (range.last < from) continue;
      Iova at = round_up(std::max(range.first, from), unit);
      const auto fits = [&] { return at >= from && at <= range.last && range.last - at >= bytes - 1; };
      while (fits()) {
        // The mapping in the way is the one that begins last before the end of the wanted range and its gap.
        auto after = mapped_.upper_bound(sum(at, bytes + kGap - 1));
        if (after == mapped_.begin()) return at;
        const auto& [begin, size] = *std::prev(after);
        const Iova behind = sum(begin, size + kGap);
        if (behind <= at) return at;
        if (behind > range.last) break;
        at = round_up(behind, unit);
      }
    }
  }
  throw Error(
      fmt::format("{}: mapping {} bytes", name_, bytes),
      fmt::format("the IOMMU has no room: {} bytes are mapped in {} ranges", mapped_bytes_, mapped_.size()),
      "use fewer queues or smaller I/Os");
}

Iova IommuSpace::map(const Region& region, Access access) {
  if (region.bytes() == 0) throw Error("mapping a region", "it is empty");
  const std::scoped_lock lock(mutex_);
  const Iova iova = find_room(region.bytes());
  int error = 0;
  if (region.place() == Place::gpu) {
    error = map_gpu(region, iova, access);
  } else {
    // The kernel pins read-only mappings as they are at that time. An untouched page is then the page of
    // zeros that all programs share, and later writes go to another page.
    own_every_page(region.host(), region.bytes());
    error = mapper_.map(iova, region.host(), region.bytes(), access);
  }
  if (error != 0) refuse(error, region, iova);
  mapped_[iova] = region.bytes();
  mapped_bytes_ += region.bytes();
  next_ = sum(iova, region.bytes() + kGap);
  return iova;
}

int IommuSpace::map_gpu(const Region& region, Iova iova, Access access) {
  if (!gpu_)
    throw Error(fmt::format("{}: mapping GPU memory", name_), "no GPU is open", {}, ExitCode::absent);
  const Descriptor dmabuf(gpu_->export_dmabuf(region.device(), region.bytes()));
  return mapper_.map_dmabuf(iova, dmabuf.get(), region.bytes(), access);
}

void IommuSpace::unmap(Iova iova) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = mapped_.find(iova);
  if (found == mapped_.end()) return;
  mapper_.unmap(iova, found->second);
  mapped_bytes_ -= found->second;
  mapped_.erase(found);
}

u64 IommuSpace::mapped_bytes() const {
  const std::scoped_lock lock(mutex_);
  return mapped_bytes_;
}

Region IommuSpace::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  // Pinned memory needs no mlock here: the IOMMU pins what it maps, and both would count towards the limit.
  if (place == Place::pinned || (place == Place::pageable && gpu)) {
    const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    if (bytes == 0 || bytes > ~u64{0} / 2)
      throw Error(fmt::format("a region of {} bytes", bytes), "the size is outside 1 .. 2^63");
    const u64 whole = round_up(bytes, page);
    u8* const base = map_ordinary(whole);
    if (base == nullptr) throw Error(fmt::format("{} bytes of host memory", whole), reason(errno));
    return Region(place, HostMemory{base, whole, [](u8* at, u64 n) { munmap(at, n); }}, std::move(gpu));
  }
  return Region(place, bytes, std::move(gpu));
}

void IommuSpace::refuse(int error, const Region& region, Iova iova) const {
  const std::string what =
      fmt::format("{}: mapping {} bytes of {}", name_, region.bytes(), name(region.place()));
  if (region.place() == Place::gpu) {
    if (error == ENOSYS)
      throw Error(what, "the VFIO group interface (type 1) maps no GPU memory",
                  "use vfio:ADDRESS,interface=iommufd, or leave queues and data in host memory");
    if (error == ENOTTY)
      throw Error(what, "this kernel's iommufd maps no files, dma-bufs included",
                  "it needs Linux 7.0 or later; or leave queues and data in host memory");
    throw Error(
        what,
        fmt::format("the GPU driver exports it, but this kernel's iommufd does not take it: {}",
                    reason(error)),
        "iommufd of Linux 7 takes only dma-bufs that vfio-pci itself exported; leave queues and data in host "
        "memory");
  }
  if (error == ENOMEM)
    throw Error(what,
                fmt::format("it passes the limit on locked memory ({}), of which {} KiB are mapped already",
                            locked_limit(), mapped_bytes_ / 1024),
                "raise it (ulimit -l unlimited; for good: doorbell doctor), or run as root");
  if (error == ENOSPC)
    throw Error(what, fmt::format("the kernel takes no more mappings than the {} there are", mapped_.size()),
                "raise dma_entry_limit of the module vfio_iommu_type1");
  if (error == EFAULT)
    throw Error(what, "the kernel cannot pin these pages", "use ordinary or huge-page memory");
  throw Error(what, fmt::format("the IOMMU refuses it at {:#x}: {}", iova, reason(error)),
              "dmesg may say why");
}

}  // namespace doorbell::pci
