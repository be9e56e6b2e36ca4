// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/mapping_guard.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "system/sysfs.hpp"

namespace doorbell {

namespace {

/// An address range that the handler reaches: a signal handler has no other argument.
struct Range {
  std::atomic<u64> begin{0};  ///< 0: the slot is free
  std::atomic<u64> end{0};
  std::atomic<bool> lost{false};
};
static_assert(std::atomic<u64>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
std::array<Range, 1024> ranges;
std::mutex making;  // guards which slots are free, and the two below
bool installed = false;
struct sigaction before;
u64 page_bytes = 4096;

void on_bus_error(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const auto at = std::bit_cast<u64>(info->si_addr);
  for (Range& r : ranges) {
    const u64 begin = r.begin.load(std::memory_order_acquire);
    if (info->si_code <= 0 || begin == 0 || at < begin || at >= r.end.load(std::memory_order_relaxed))
      continue;
    r.lost.store(true, std::memory_order_release);
    void* const page = std::bit_cast<void*>(at & ~(page_bytes - 1));
    const bool replaced = mmap(page, page_bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    errno = error;
    if (replaced) return;
    break;
  }
  // Not a guarded load or store: the earlier action gets it, when the instruction is tried again or by this.
  (void)sigaction(signal, &before, nullptr);
  if (info->si_code <= 0) (void)raise(signal);
  errno = error;
}

void install() {
  if (installed) return;
  page_bytes = static_cast<u64>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGBUS, &action, &before) != 0) throw Error("signal handlers", reason(errno));
  installed = true;
}

}  // namespace

MappingGuard::MappingGuard(const void* base, u64 bytes) {
  const std::scoped_lock lock(making);
  install();
  while (slot_ < ranges.size() && ranges[slot_].begin.load(std::memory_order_relaxed) != 0) ++slot_;
  if (slot_ == ranges.size())
    throw Error("mapped files", fmt::format("more than {} at a time", ranges.size()));
  Range& r = ranges[slot_];
  r.lost.store(false, std::memory_order_relaxed);
  r.end.store(std::bit_cast<u64>(base) + bytes, std::memory_order_relaxed);
  r.begin.store(std::bit_cast<u64>(base), std::memory_order_release);  // before it, the other members
}

MappingGuard::~MappingGuard() {
  const std::scoped_lock lock(making);
  ranges[slot_].begin.store(0, std::memory_order_release);
}

bool MappingGuard::lost() const {
  return ranges[slot_].lost.load(std::memory_order_acquire);
}

}  // namespace doorbell
