// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/open_files.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

namespace doorbell {

std::optional<u64> open_file_count() {
  constexpr const char* kFolder = "/proc/self/fd";
  struct stat s {};
  // Since Linux 6.2 the size is the number.
  if (::stat(kFolder, &s) == 0 && s.st_size > 0) return static_cast<u64>(s.st_size);
  std::error_code error;
  u64 n = 0;
  for (auto it = std::filesystem::directory_iterator(kFolder, error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error))
    ++n;
  return error ? std::nullopt : std::optional(n);
}

u64 open_file_limit() {
  rlimit l{};
  return getrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur : RLIM_INFINITY;
}

void allow_all_open_files() {
  rlimit l{};
  if (getrlimit(RLIMIT_NOFILE, &l) != 0) return;
  l.rlim_cur = l.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &l);
}

std::string more_open_files() {
  return fmt::format("this process may have {} files open: raise the limit (ulimit -Hn), or use fewer queues",
                     open_file_limit());
}

void require_open_files(u64 files, const std::string& what, const std::string& sum) {
  const u64 most = open_file_limit(), now = open_file_count().value_or(0);
  if (now + files <= most) return;
  throw Error(what,
              fmt::format("they need {} open files ({}) beside {} that are open, and {} are allowed", files,
                          sum, now, most),
              "raise the hard limit (ulimit -Hn), or ask for fewer queues or less in flight");
}

}  // namespace doorbell
