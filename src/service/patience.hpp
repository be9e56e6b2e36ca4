// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How long another process is waited for, and what ends a wait before that.
#pragma once

#include <doorbell/config.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>

#include "measure/stop.hpp"
#include "system/clock.hpp"
#include "system/running_time.hpp"

namespace doorbell::service {

/// Of all waits of one driver.
struct Patience {
  double limit_s = 30;                      ///< for the answer to a call that moves no data
  const measure::StopFlag* stop = nullptr;  ///< ends a wait too; may be null
  /// After a stop what is under way may still be answered: a server that lives does so at once.
  double stop_grace_s = 1;
  /// A server that has not answered once is asked nothing more, so that a cleaning up does not wait again for
  /// each call.
  bool gives_up = false;
};

/// One wait, of the time in which this process runs. It is made of slices, so that a stop is noticed.
class Waiting {
 public:
  /// For `limit_s` in place of what the patience says.
  Waiting(const Patience& patience, double limit_s)
      : time_(wall_ns()),
        limit_ns_(ticks_of(limit_s, 1)),
        grace_ns_(ticks_of(patience.stop_grace_s, 1)),
        stop_(patience.stop) {}

  /// 0 while the wait goes on; ETIMEDOUT, or EINTR after a stop.
  [[nodiscard]] int over() {
    const u64 ran_ns = time_.look(wall_ns());
    if (!stopped_ && stop_ != nullptr && stop_->requested()) {
      stopped_ = true;
      limit_ns_ = std::min(limit_ns_, ran_ns + grace_ns_);
    }
    if (ran_ns < limit_ns_) return 0;
    return stopped_ ? EINTR : ETIMEDOUT;
  }
  /// Until when to wait before over() is asked again, by wall_ns().
  [[nodiscard]] u64 slice_ns() const {
    const u64 left_ns = limit_ns_ - std::min(limit_ns_, time_.ran_ns());
    return wall_ns() + std::min(left_ns, RunningTime::kMostNs / 2);
  }

 private:
  RunningTime time_;
  u64 limit_ns_;
  u64 grace_ns_;
  const measure::StopFlag* stop_;
  bool stopped_ = false;
};

/// Why a wait for `who` has ended, by what over() has said.
[[nodiscard]] inline std::string why_over(int over, const std::string& who, double limit_s) {
  if (over == EINTR) return fmt::format("interrupted before {} answered", who);
  const double shown = limit_s < 1 ? limit_s : std::round(limit_s * 10) / 10;
  return fmt::format("{} did not answer in {:g} s", who, shown);
}

}  // namespace doorbell::service
