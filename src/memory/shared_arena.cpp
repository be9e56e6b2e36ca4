// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/shared_arena.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {
constexpr u64 kPage = 4096;
}

std::shared_ptr<SharedArena> SharedArena::make(const std::string& with) {
  return std::shared_ptr<SharedArena>(new SharedArena(with));
}

SharedArena::SharedArena(const std::string& with)
    : with_(with),
      bytes_(static_cast<u64>(sysconf(_SC_PHYS_PAGES)) * static_cast<u64>(sysconf(_SC_PAGESIZE))) {
  const std::string subject = "memory to share with " + with_;
  fd_ = Descriptor(memfd_create("doorbell-shared", MFD_CLOEXEC));
  if (fd_.get() < 0 || ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0)
    throw Error(subject, reason(errno));
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd_.get(), 0);
  if (at == MAP_FAILED) throw Error(subject, reason(errno));
  base_ = static_cast<u8*>(at);
  free_.emplace(0, bytes_);
}

SharedArena::~SharedArena() {
  munmap(base_, bytes_);
}

u8* SharedArena::take(u64 n) {
  const std::scoped_lock lock(mutex_);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [at, room] = *it;
    if (room < n) continue;
    free_.erase(it);
    if (room > n) free_.emplace(at + n, room - n);
    return base_ + at;
  }
  throw Error(fmt::format("{} bytes to share with {}", n, with_),
              fmt::format("they do not fit into the machine's {} bytes of memory", bytes_));
}

void SharedArena::give_back(u8* at, u64 n) {
  const std::scoped_lock lock(mutex_);
  u64 begin = static_cast<u64>(at - base_);
  // Gives the pages back, and makes the next owner's memory zero.
  fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
            static_cast<off_t>(n));
  auto after = free_.lower_bound(begin);
  if (after != free_.end() && begin + n == after->first) {
    n += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      n += before->second;
      free_.erase(before);
    }
  }
  free_.emplace(begin, n);
}

Region SharedArena::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  if (place != Place::pageable && place != Place::pinned)
    throw Error(fmt::format("{} for {}", name(place), with_), "it reaches only memory that is shared with it",
                "use host memory without huge pages");
  if (bytes == 0 || bytes > bytes_)
    throw Error(fmt::format("a region of {} bytes", bytes), fmt::format("1 to {} bytes are shared", bytes_));
  const u64 rounded = (bytes + kPage - 1) / kPage * kPage;
  u8* const at = take(rounded);
  return Region(place, {at, rounded, [arena = shared_from_this()](u8* p, u64 n) { arena->give_back(p, n); }},
                std::move(gpu));
}

}  // namespace doorbell
