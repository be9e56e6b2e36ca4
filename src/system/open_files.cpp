// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/open_files.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <filesystem>
#include <system_error>

namespace doorbell {

namespace {

/// Files that this process has open.
u64 open_now() {
  std::error_code error;
  u64 n = 0;
  for (auto it = std::filesystem::directory_iterator("/proc/self/fd", error);
       !error && it != std::filesystem::directory_iterator(); it.increment(error))
    ++n;
  return n;
}

u64 limit() {
  rlimit l{};
  return getrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur : RLIM_INFINITY;
}

}  // namespace

void allow_all_open_files() {
  rlimit l{};
  if (getrlimit(RLIMIT_NOFILE, &l) != 0) return;
  l.rlim_cur = l.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &l);
}

std::string more_open_files() {
  return fmt::format("this process may have {} files open: raise the limit (ulimit -Hn), or use fewer queues",
                     limit());
}

void require_open_files(u64 files, const std::string& what, const std::string& sum) {
  const u64 most = limit(), now = open_now();
  if (now + files <= most) return;
  throw Error(what,
              fmt::format("they need {} open files ({}) beside {} that are open, and {} are allowed", files,
                          sum, now, most),
              "raise the hard limit (ulimit -Hn), or ask for fewer queues or less in flight");
}

}  // namespace doorbell
