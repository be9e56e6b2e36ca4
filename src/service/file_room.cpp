// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/file_room.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace doorbell::service {

namespace {

/// Messages after which it is counted again although there should be room: the limit may be another one.
constexpr u32 kAgain = 256;

}  // namespace

u64 open_file_count() {
  constexpr const char* kFolder = "/proc/self/fd";
  struct stat s {};
  // Since Linux 6.2 the size is the number.
  if (::stat(kFolder, &s) == 0 && s.st_size > 0) return static_cast<u64>(s.st_size);
  u64 count = 0;
  DIR* const folder = ::opendir(kFolder);
  if (folder == nullptr) return ~u64{0};  // for want of a descriptor, most likely
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;  // with ".", ".." and the folder's own: three too many do no harm
}

bool FileRoom::has(u32 files) {
  if (left_ >= files && --asked_ > 0) return true;
  asked_ = kAgain;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const u64 open = open_file_count();
  const u64 free = open < limit.rlim_cur ? limit.rlim_cur - open : 0;
  // Threads of the card and the workers may open as many as come here before the next count.
  left_ = free / 2;
  return left_ >= files;
}

}  // namespace doorbell::service
