// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/mirrored_ring.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "memory/huge_pages.hpp"
#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::sockets {

namespace {

u64 ring_page(Place place) {
  if (place == Place::huge_2m) return kHuge2M;
  if (place == Place::huge_1g) return kHuge1G;
  return static_cast<u64>(::sysconf(_SC_PAGESIZE));
}

unsigned int file_flags(Place place) {
  if (place == Place::huge_2m) return MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB;
  if (place == Place::huge_1g) return MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_1GB;
  return MFD_CLOEXEC;
}

[[noreturn]] void no_memory(Place place, u64 bytes, int error) {
  const std::string what = fmt::format("a receive ring of {} bytes of {}", bytes, name(place));
  if (place == Place::huge_2m || place == Place::huge_1g) {
    const HugePages have = huge_pages(ring_page(place));
    throw Error(
        what, fmt::format("{} pages needed, {} free of {}", bytes / ring_page(place), have.free, have.total),
        fmt::format("echo {} > {}", have.total - have.free + bytes / ring_page(place), have.control_file));
  }
  throw Error(what, reason(error),
              place == Place::pinned ? "raise the locked-memory limit: ulimit -l unlimited" : "");
}

/// Address space for `bytes` that start at a page of the place.
u8* reserve(u64 bytes, u64 page) {
  const u64 all = bytes + page;
  void* const p = ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  u8* const first = static_cast<u8*>(p);
  const u64 skip = (page - reinterpret_cast<std::uintptr_t>(first) % page) % page;
  if (skip > 0) ::munmap(first, skip);
  ::munmap(first + skip + bytes, all - skip - bytes);
  return first + skip;
}

HostMemory map_twice(Place place, u64 wanted) {
  const u64 page = ring_page(place);
  const u64 bytes = (wanted + page - 1) / page * page;
  const Descriptor file(::memfd_create("doorbell-ring", file_flags(place)));
  if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
    no_memory(place, bytes, errno);
  u8* const base = reserve(2 * bytes, page);
  if (base == nullptr) no_memory(place, bytes, errno);
  for (u8* const half : {base, base + bytes}) {
    if (::mmap(half, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file.get(), 0) != MAP_FAILED)
      continue;
    const int error = errno;
    ::munmap(base, 2 * bytes);
    no_memory(place, bytes, error);
  }
  if (place == Place::pinned && ::mlock(base, 2 * bytes) != 0) {
    const int error = errno;
    ::munmap(base, 2 * bytes);
    no_memory(place, bytes, error);
  }
  return {base, 2 * bytes, [](u8* at, u64 n) { ::munmap(at, n); }};
}

}  // namespace

MirroredRing::MirroredRing(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu)
    : memory_(place, map_twice(place, bytes), std::move(gpu)) {}

}  // namespace doorbell::net::sockets
