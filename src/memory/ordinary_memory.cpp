// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "memory/ordinary_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "memory/huge_pages.hpp"

namespace doorbell {

u8* map_ordinary(u64 bytes) noexcept {
  const u64 slack = bytes >= kHuge2M ? kHuge2M : 0;
  if (bytes > ~u64{0} - slack) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const p = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  u8* const begin = static_cast<u8*>(p);
  if (slack == 0) return begin;
  const u64 before = (kHuge2M - reinterpret_cast<u64>(begin) % kHuge2M) % kHuge2M;
  u8* const base = begin + before;
  if (before != 0) munmap(begin, before);
  if (before != slack) munmap(base + bytes, slack - before);
  madvise(base, bytes, MADV_HUGEPAGE);
  return base;
}

void own_every_page(u8* base, u64 bytes) noexcept {
  // One call for the whole; kernels before 5.14 do not know it.
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return;
  // A read first would fault twice, and clear the shared page on every processor that runs the process.
  const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
  for (u64 at = 0; at < bytes; at += page) __atomic_fetch_or(base + at, u8{0}, __ATOMIC_RELAXED);
}

}  // namespace doorbell
