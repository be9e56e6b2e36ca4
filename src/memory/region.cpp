// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <doorbell/region.hpp>

#include "memory/huge_pages.hpp"
#include "memory/ordinary_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {

u64 page_bytes(Place p) {
  switch (p) {
    case Place::huge_2m:
      return kHuge2M;
    case Place::huge_1g:
      return kHuge1G;
    case Place::gpu:
      return 64 * 1024;
    default:
      return static_cast<u64>(sysconf(_SC_PAGESIZE));
  }
}

u8* map_huge(Place place, u64 bytes) {
  const u64 page = page_bytes(place);
  const int log2 = place == Place::huge_1g ? 30 : 21;
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | log2 << MAP_HUGE_SHIFT, -1, 0);
  if (p != MAP_FAILED) return static_cast<u8*>(p);
  const HugePages have = huge_pages(page);
  throw Error(fmt::format("{} of {}", bytes, name(place)),
              fmt::format("{} pages needed, {} free of {}", bytes / page, have.free, have.total),
              fmt::format("echo {} > {}", have.total - have.free + bytes / page, have.control_file));
}

u8* map_locked(u64 bytes) {
  u8* p = map_ordinary(bytes);
  if (p == nullptr) throw Error(fmt::format("{} bytes of host memory", bytes), reason(errno));
  if (mlock(p, bytes) == 0) return p;
  const int why = errno;
  munmap(p, bytes);
  throw Error(fmt::format("{} bytes of pinned memory", bytes), reason(why),
              "raise the locked-memory limit: ulimit -l unlimited");
}

}  // namespace

std::string_view name(Place p) {
  switch (p) {
    case Place::pageable:
      return "pageable memory";
    case Place::pinned:
      return "pinned memory";
    case Place::huge_2m:
      return "2 MiB huge pages";
    case Place::huge_1g:
      return "1 GiB huge pages";
    case Place::gpu:
      return "GPU memory";
  }
  return "?";
}

Region::Region(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) : place_(place), gpu_(std::move(gpu)) {
  const u64 page = page_bytes(place);
  if (bytes == 0 || bytes > ~u64{0} - page)
    throw Error(fmt::format("a region of {} bytes", bytes), "the size is outside 1 .. 2^64 - one page");
  bytes_ = (bytes + page - 1) / page * page;
  if (place == Place::gpu) {
    if (!gpu_) throw Error("GPU memory", "no GPU is open", {}, ExitCode::absent);
    base_ = device_ = static_cast<u8*>(gpu_->allocate(bytes_));
    return;
  }
  if (place == Place::huge_2m || place == Place::huge_1g) {
    base_ = map_huge(place, bytes_);
  } else if (gpu_) {
    // The driver's own pinned memory is right for both, because a GPU could not reach pageable memory.
    base_ = device_ = static_cast<u8*>(gpu_->allocate_pinned(bytes_));
    return;
  } else if (place == Place::pinned) {
    base_ = map_locked(bytes_);
  } else {
    base_ = map_ordinary(bytes_);
    if (base_ == nullptr) throw Error(fmt::format("{} bytes of host memory", bytes_), reason(errno));
  }
  register_with_gpu();
}

Region::Region(Place place, HostMemory memory, std::shared_ptr<gpu::Gpu> gpu)
    : place_(place),
      bytes_(memory.bytes),
      base_(memory.base),
      free_(std::move(memory.free)),
      gpu_(std::move(gpu)) {
  register_with_gpu();
}

void Region::register_with_gpu() {
  if (!gpu_) return;
  try {
    device_ = static_cast<u8*>(gpu_->register_host(base_, bytes_, false));
    registered_ = true;
  } catch (...) {
    if (free_) free_(base_, bytes_);
    else munmap(base_, bytes_);
    throw;
  }
}

void Region::release() noexcept {
  if (base_ == nullptr) return;
  if (place_ == Place::gpu) {
    gpu_->free(base_);
  } else if (gpu_ && !registered_) {
    gpu_->free_pinned(base_);
  } else {
    if (registered_) gpu_->unregister_host(base_);
    if (free_) free_(base_, bytes_);
    else munmap(base_, bytes_);
  }
  base_ = device_ = nullptr;
  bytes_ = 0;
  registered_ = false;
}

Region::~Region() {
  release();
}

Region::Region(Region&& o) noexcept
    : place_(o.place_),
      bytes_(std::exchange(o.bytes_, 0)),
      base_(std::exchange(o.base_, nullptr)),
      device_(std::exchange(o.device_, nullptr)),
      registered_(std::exchange(o.registered_, false)),
      free_(std::exchange(o.free_, nullptr)),
      gpu_(std::move(o.gpu_)) {}

Region& Region::operator=(Region&& o) noexcept {
  if (this == &o) return *this;
  release();
  place_ = o.place_;
  bytes_ = std::exchange(o.bytes_, 0);
  base_ = std::exchange(o.base_, nullptr);
  device_ = std::exchange(o.device_, nullptr);
  registered_ = std::exchange(o.registered_, false);
  free_ = std::exchange(o.free_, nullptr);
  gpu_ = std::move(o.gpu_);
  return *this;
}

void Region::populate() {
  if (place_ == Place::gpu || base_ == nullptr) return;
  own_every_page(base_, bytes_);
}

void Region::write(u64 offset, const void* from, u64 n) {
  if (offset > bytes_ || n > bytes_ - offset)
    throw Error("a write to a region", fmt::format("{} bytes at {} pass its end at {}", n, offset, bytes_));
  if (place_ == Place::gpu) gpu_->copy(base_ + offset, from, n);
  else std::memcpy(base_ + offset, from, n);
}

void Region::read(u64 offset, void* to, u64 n) const {
  if (offset > bytes_ || n > bytes_ - offset)
    throw Error("a read of a region", fmt::format("{} bytes at {} pass its end at {}", n, offset, bytes_));
  if (place_ == Place::gpu) gpu_->copy(to, base_ + offset, n);
  else std::memcpy(to, base_ + offset, n);
}

}  // namespace doorbell
