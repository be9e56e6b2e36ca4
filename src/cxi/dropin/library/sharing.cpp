// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/library/sharing.hpp"
#include "system/sealed_memory.hpp"
#include "system/signals_blocked.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace doorbell::cxi::dropin {

namespace {

/// A line of /proc/self/maps.
struct Range {
  u64 begin = 0, end = 0;
  bool read = false, write = false, shared = false;
  u64 offset = 0;
  std::pair<u64, u64> file;  ///< device, inode; inode 0: anonymous
  std::string name;
};

std::vector<Range> ranges_of_this_process() {
  std::vector<Range> all;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"),
                                                             std::fclose);
  if (!maps) return all;
  char line[512];
  while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major = 0, minor = 0;
    char mode[8] = {};
    int name_at = 0;
    if (std::sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %n", &begin, &end, mode, &offset, &major, &minor, &inode,
                    &name_at) < 7)
      continue;
    Range r{begin,
            end,
            mode[0] == 'r',
            mode[1] == 'w',
            mode[3] == 's',
            offset,
            {makedev(major, minor), inode},
            line + name_at};
    while (!r.name.empty() && r.name.back() == '\n') r.name.pop_back();
    all.push_back(std::move(r));
  }
  return all;
}

/// Replaces the private pages [begin, begin + bytes) by those of `file`. Nothing between the copy and the new
/// mapping stores to memory, and no signal handler runs.
int replace(u64 begin, u64 bytes, int file) {
  const SignalsBlocked blocked;
  auto* const at = reinterpret_cast<u8*>(begin);
  int error = 0;
  for (u64 done = 0; done < bytes && error == 0;) {
    // The plain call: the pages hold more than what the program gives, and a sanitizer watches over that.
    const ssize_t n = ::syscall(SYS_pwrite64, file, at + done, bytes - done, static_cast<off_t>(done));
    if (n < 0) error = errno;
    else done += static_cast<u64>(n);
  }
  if (error == 0 && ::mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
    error = errno;
  return -error;
}

}  // namespace

Descriptor sealed_file(u64 bytes, int& error) {
  Descriptor file = sealed_memory("doorbell-cxi", bytes);
  error = file.get() < 0 ? -errno : 0;
  return file;
}

int Sharing::check(u64 address, u64 bytes, bool writable) {
  u64 at = address;
  for (const Range& r : ranges_of_this_process()) {
    if (r.end <= at) continue;
    if (r.begin > at || !r.read || (writable && !r.write)) return -EFAULT;
    at = r.end;
    if (at >= address + bytes) return 0;
  }
  return -EFAULT;
}

int Sharing::share(u64 address, u64 bytes, std::vector<SharedPart>& parts, std::string& why) {
  const std::vector<Range> ranges = ranges_of_this_process();
  // Memory that the program has unmapped since is not its own any more.
  std::erase_if(files_, [&](const auto& f) {
    return std::ranges::none_of(ranges, [&](const Range& r) { return r.file == f.first; });
  });
  u64 at = address;
  const u64 end = address + bytes;
  for (const Range& r : ranges) {
    if (r.end <= at || at >= end) continue;
    if (r.begin > at) break;
    const u64 here = std::min(r.end, end) - at;
    if (const auto known = files_.find(r.file); known != files_.end()) {
      parts.push_back({known->second.get(), r.offset + (at - r.begin), here});
      at += here;
      continue;
    }
    if (r.shared || r.file.second != 0 || !r.read || !r.write || r.name == "[stack]") {
      why = "memory that cannot be shared with the server: " +
            (r.name.empty() ? std::string("pages that are not both readable and writable") : r.name);
      return -EFAULT;
    }
    int error = 0;
    Descriptor file = sealed_file(here, error);
    struct stat s {};
    if (error == 0 && ::fstat(file.get(), &s) != 0) error = -errno;
    if (error == 0) error = replace(at, here, file.get());
    if (error != 0) {
      why = "the kernel gives no memory to share";
      return error;
    }
    parts.push_back({file.get(), 0, here});
    files_.emplace(std::pair<u64, u64>{s.st_dev, s.st_ino}, std::move(file));
    at += here;
  }
  if (at >= end) return 0;
  why = "there is no memory at that address";
  return -EFAULT;
}

}  // namespace doorbell::cxi::dropin
