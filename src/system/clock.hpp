// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Host clocks. Monotonic only.
#pragma once

#include <doorbell/config.hpp>

#include <ctime>
#include <thread>

namespace doorbell {

/// The time, in ns, at which that is due which is not.
inline constexpr u64 kNever = ~u64{0};

[[nodiscard]] inline u64 ns_of(const timespec& t) {
  return static_cast<u64>(t.tv_sec) * 1'000'000'000u + static_cast<u64>(t.tv_nsec);
}

/// The time of `clock` in ns; 0 where it cannot be read.
[[nodiscard]] inline u64 clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return ns_of(t);
}

/// CLOCK_MONOTONIC in ns. May be called in a signal handler.
[[nodiscard]] inline u64 wall_ns() {
  return clock_ns(CLOCK_MONOTONIC);
}

/// CPU time of the calling thread in ns.
[[nodiscard]] inline u64 thread_cpu_ns() {
  return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

/// CPU time of another thread of this process, which has not been joined.
[[nodiscard]] u64 thread_cpu_ns(std::thread& thread);

/// `seconds` in ticks of `ns_per_tick`; what passes a clock's range is a time that never comes.
[[nodiscard]] inline u64 ticks_of(double seconds, double ns_per_tick) {
  constexpr double kLongest = 4611686018427387904.0;  // 2^62: differences of clock readings stay below it
  const double ticks = seconds * 1e9 / ns_per_tick;
  return ticks < kLongest ? static_cast<u64>(ticks) : static_cast<u64>(kLongest);
}

/// The clock of CPU-initiated loops: the time-stamp counter where the CPU says that it is invariant
/// or the kernel keeps time with it, else CLOCK_MONOTONIC. About 10 ns a reading against 25 to 40.
struct HostClock {
  /// True when now() reads the time-stamp counter.
  [[nodiscard]] static bool uses_tsc();
  /// Nanoseconds a tick, measured once at start-up, as a fixed-point number with 24 fraction bits.
  [[nodiscard]] static u64 ns_per_tick_q24();
  [[nodiscard]] static u64 ticks(double seconds);

  [[nodiscard]] static u64 now() {
#if defined(__x86_64__)
    if (tsc_) return __builtin_ia32_rdtsc();
#endif
    return doorbell::wall_ns();
  }
  [[nodiscard]] static u64 wall_ns() {
    return doorbell::wall_ns();
  }

 private:
  static const bool tsc_;
};

}  // namespace doorbell
