// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The processor time that a thread costs.
#pragma once

#include <doorbell/config.hpp>
#include <sys/resource.h>

#include <optional>
#include <string>

namespace doorbell::measure {

struct ThreadCost {
  std::string name;
  double user_s = 0;
  double system_s = 0;
  double waited_s = 0;  ///< ready to run, but the processor was busy; 0 where the kernel does not report it
  std::optional<double> checked_s =
      {};             ///< of a thread that checks payloads: how long it had something to check
  double wall_s = 0;  ///< for how long its processor time was counted
};

/// CPU time of the calling thread since this was made. The sum is by the thread's own clock, to the
/// nanosecond. Some kernels divide it into user and system time by timer ticks only: there, less than a
/// tick counts as user time. Thread rule: made and asked by the same thread.
class CpuTime {
 public:
  CpuTime();
  [[nodiscard]] ThreadCost spent(std::string name) const;

 private:
  u64 wall_begin_ns_;
  u64 begin_ns_;
  u64 waited_ns_;
  rusage begin_{};
};

/// `ns` by the shares that two readings of the kernel's accounts show.
[[nodiscard]] ThreadCost split_cpu_time(std::string name, u64 ns, const rusage& before, const rusage& after);

}  // namespace doorbell::measure
