// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/cpu_time.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "system/clock.hpp"

namespace doorbell::measure {

namespace {

double microseconds(const timeval& before, const timeval& after) {
  return static_cast<double>(after.tv_sec - before.tv_sec) * 1e6 +
         static_cast<double>(after.tv_usec - before.tv_usec);
}

/// Of the calling thread, since it began. By bare system calls: initiators have tables of files of their own,
/// and ThreadSanitizer, which follows the C library's calls, takes one number in two tables for one file.
u64 waited_ns() {
  const long fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 128> text{};
  const long n = syscall(SYS_read, fd, text.data(), text.size() - 1);
  (void)syscall(SYS_close, fd);
  unsigned long long ran = 0, waited = 0;
  return n > 0 && std::sscanf(text.data(), "%llu %llu", &ran, &waited) == 2 ? waited : 0;
}

}  // namespace

CpuTime::CpuTime() : wall_begin_ns_(wall_ns()), begin_ns_(0), waited_ns_(waited_ns()) {
  getrusage(RUSAGE_THREAD, &begin_);
  begin_ns_ = thread_cpu_ns();
}

ThreadCost CpuTime::spent(std::string name) const {
  const u64 ns = thread_cpu_ns() - begin_ns_;
  rusage now{};
  getrusage(RUSAGE_THREAD, &now);
  ThreadCost cost = split_cpu_time(std::move(name), ns, begin_, now);
  cost.waited_s = static_cast<double>(waited_ns() - waited_ns_) * 1e-9;
  cost.wall_s = static_cast<double>(wall_ns() - wall_begin_ns_) * 1e-9;
  return cost;
}

ThreadCost split_cpu_time(std::string name, u64 ns, const rusage& before, const rusage& after) {
  const double user = microseconds(before.ru_utime, after.ru_utime);
  const double system = microseconds(before.ru_stime, after.ru_stime);
  const double share = user + system > 0 ? user / (user + system) : 1;
  const double seconds = static_cast<double>(ns) * 1e-9;
  return {std::move(name), seconds * share, seconds * (1 - share), 0};
}

}  // namespace doorbell::measure
