// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/qemu/memory.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {
constexpr u64 kPage = 4096;
}

QemuMemory::Arena::Arena() {
  // As large as the machine's memory: pages exist only once they are touched.
  bytes = static_cast<u64>(sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGESIZE));
  fd = memfd_create("doorbell-qemu", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    throw Error("memory to share with QEMU", reason(why));
  }
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) {
    const int why = errno;
    close(fd);
    throw Error("memory to share with QEMU", reason(why));
  }
  base = static_cast<u8*>(at);
  free.emplace(0, bytes);
}

QemuMemory::Arena::~Arena() {
  munmap(base, bytes);
  close(fd);
}

u8* QemuMemory::Arena::take(u64 n) {
  const std::scoped_lock lock(mutex);
  for (auto it = free.begin(); it != free.end(); ++it) {
    const auto [at, room] = *it;
    if (room < n) continue;
    free.erase(it);
    if (room > n) free.emplace(at + n, room - n);
    return base + at;
  }
  throw Error(fmt::format("{} bytes to share with QEMU", n),
              fmt::format("they do not fit into the machine's {} bytes of memory", bytes));
}

void QemuMemory::Arena::give_back(u8* at, u64 n) {
  const std::scoped_lock lock(mutex);
  u64 begin = static_cast<u64>(at - base);
  // Gives the pages back, and makes the next owner's memory zero.
  fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin), static_cast<off_t>(n));
  auto after = free.lower_bound(begin);
  if (after != free.end() && begin + n == after->first) {
    n += after->second;
    after = free.erase(after);
  }
  if (after != free.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      n += before->second;
      free.erase(before);
    }
  }
  free.emplace(begin, n);
}

QemuMemory::QemuMemory() : arena_(std::make_shared<Arena>()) {}

Region QemuMemory::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  if (place != Place::pageable && place != Place::pinned)
    throw Error(fmt::format("{} for a QEMU controller", name(place)),
                "QEMU reaches only memory that is shared with it", "use host memory without huge pages");
  if (bytes == 0 || bytes > arena_->bytes)
    throw Error(fmt::format("a region of {} bytes", bytes),
                fmt::format("QEMU shares 1 to {} bytes", arena_->bytes));
  const u64 rounded = (bytes + kPage - 1) / kPage * kPage;
  u8* const at = arena_->take(rounded);
  return Region(place, {at, rounded, [arena = arena_](u8* p, u64 n) { arena->give_back(p, n); }},
                std::move(gpu));
}

Iova QemuMemory::map(const Region& region, Access) {
  const Iova at = reinterpret_cast<Iova>(region.host());
  if (!holds(at, region.bytes()))
    throw Error("mapping a region for a QEMU controller", "it is not memory that is shared with QEMU");
  return at;
}

bool QemuMemory::holds(Iova at, u64 n) const {
  const Iova begin = reinterpret_cast<Iova>(arena_->base);
  return at >= begin && n <= arena_->bytes && at - begin <= arena_->bytes - n;
}

}  // namespace doorbell::nvme
