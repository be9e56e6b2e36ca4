// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/clock.hpp"

#include <pthread.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>

namespace doorbell {

namespace {

bool invariant_tsc() {
#if defined(__x86_64__)
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return (line + ' ').find(" constant_tsc ") != std::string::npos &&
           (line + ' ').find(" nonstop_tsc ") != std::string::npos;
  }
#endif
  return false;
}

/// A virtual machine may hide what its processor promises; its kernel has compared the counters of all
/// processors with another clock, and goes on doing so, before it keeps time with them.
bool kernel_keeps_time_with_tsc() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  return std::getline(file, name) && name == "tsc";
}

/// Reads both clocks `n` times and keeps the pair that took least time: the closest to simultaneous.
[[maybe_unused]] void read_both(u64& ns, u64& ticks) {
  u64 best = ~u64{0};
  for (int i = 0; i < 16; ++i) {
    const u64 before = wall_ns();
    const u64 t = HostClock::now();
    const u64 after = wall_ns();
    if (after - before >= best) continue;
    best = after - before;
    ns = before + (after - before) / 2;
    ticks = t;
  }
}

u64 calibrate() {
  if (!HostClock::uses_tsc()) return u64{1} << 24;
  u64 ns0 = 0, ticks0 = 0, ns1 = 0, ticks1 = 0;
  read_both(ns0, ticks0);
  // The counter goes on while the thread sleeps; a processor's time would be lost to polling.
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  read_both(ns1, ticks1);
  const double ratio = static_cast<double>(ns1 - ns0) / static_cast<double>(ticks1 - ticks0);
  return static_cast<u64>(std::lround(ratio * (1 << 24)));
}

}  // namespace

u64 thread_cpu_ns(std::thread& thread) {
  clockid_t clock{};
  return pthread_getcpuclockid(thread.native_handle(), &clock) == 0 ? clock_ns(clock) : 0;
}

const bool HostClock::tsc_ = invariant_tsc() || kernel_keeps_time_with_tsc();

bool HostClock::uses_tsc() {
  return tsc_;
}

u64 HostClock::ns_per_tick_q24() {
  static const u64 value = calibrate();
  return value;
}

u64 HostClock::ticks(double seconds) {
  const double ns_per_tick = static_cast<double>(ns_per_tick_q24()) / (1 << 24);
  return ticks_of(seconds, ns_per_tick);
}

}  // namespace doorbell
