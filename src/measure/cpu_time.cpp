// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/cpu_time.hpp"

#include <fstream>
#include <utility>

#include "measure/clock.hpp"

namespace doorbell::measure {

namespace {

double microseconds(const timeval& before, const timeval& after) {
  return static_cast<double>(after.tv_sec - before.tv_sec) * 1e6 +
         static_cast<double>(after.tv_usec - before.tv_usec);
}

/// Of the calling thread, since it began.
u64 waited_ns() {
  std::ifstream file("/proc/thread-self/schedstat");
  u64 ran = 0, waited = 0;
  return file >> ran >> waited ? waited : 0;
}

}  // namespace

CpuTime::CpuTime() : begin_ns_(0), waited_ns_(waited_ns()) {
  getrusage(RUSAGE_THREAD, &begin_);
  begin_ns_ = thread_cpu_ns();
}

ThreadCost CpuTime::spent(std::string name) const {
  const u64 ns = thread_cpu_ns() - begin_ns_;
  rusage now{};
  getrusage(RUSAGE_THREAD, &now);
  ThreadCost cost = split_cpu_time(std::move(name), ns, begin_, now);
  cost.waited_s = static_cast<double>(waited_ns() - waited_ns_) * 1e-9;
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
