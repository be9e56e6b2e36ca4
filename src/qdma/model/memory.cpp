// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/model/memory.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

constexpr std::array<CardMemory::Region, 3> kRegions = {{
    {kHbmBase, kHbmBytes, kDirH2C | kDirC2H, 0},
    {kDdrBase, kDdrBytes, kDirH2C | kDirC2H, kHbmBytes},
    {kPdiBase, kPdiBytes, kDirH2C, kHbmBytes + kDdrBytes},
}};
constexpr u64 kMapped = kHbmBytes + kDdrBytes + kPdiBytes;

}  // namespace

CardMemory::CardMemory() {
  void* p =
      mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    throw Error("software card", fmt::format("64 GiB of address space for its memory: {}", reason(errno)),
                "the limits are ulimit -v and vm.overcommit_memory");
  base_ = static_cast<u8*>(p);
  // Huge pages would hold 2 MiB for one byte; a core file would hold all of it.
  madvise(p, kMapped, MADV_NOHUGEPAGE);
  madvise(p, kMapped, MADV_DONTDUMP);
}

CardMemory::~CardMemory() {
  munmap(base_, kMapped);
}

const CardMemory::Region* CardMemory::find(u64 address, u64 bytes) {
  const auto* r = std::find_if(kRegions.begin(), kRegions.end(),
                               [&](const Region& region) { return region.holds(address, bytes); });
  return r == kRegions.end() ? nullptr : r;
}

bool CardMemory::reaches(Direction direction, u64 address, u64 bytes, u64 aperture) {
  const u64 begin = aperture == 0 ? address : address & ~(aperture - 1);
  const u64 end_room = aperture == 0 ? bytes : aperture;
  // A transfer that stays below the end of the window touches no more than its own range.
  const bool wraps = aperture != 0 && bytes > aperture - (address - begin);
  const Region* r = wraps ? find(begin, end_room) : find(address, bytes);
  return r != nullptr && (r->directions & static_cast<u32>(direction)) != 0;
}

u8* CardMemory::at(u64 address) const {
  const Region* r = find(address, 1);
  return base_ + r->offset + (address - r->base);
}

void CardMemory::copy(Direction direction, u8* host, u64 address, u64 skip, u64 bytes, u64 aperture) const {
  const u64 window = aperture == 0 ? 0 : address & ~(aperture - 1);
  while (bytes > 0) {
    u64 place = address + skip, n = bytes;
    if (aperture != 0) {
      const u64 offset = (place - window) & (aperture - 1);
      place = window + offset;
      n = std::min(n, aperture - offset);
    }
    if (direction == Direction::host_to_card) std::memcpy(at(place), host + skip, n);
    else std::memcpy(host + skip, at(place), n);
    skip += n;
    bytes -= n;
  }
}

}  // namespace doorbell::qdma
