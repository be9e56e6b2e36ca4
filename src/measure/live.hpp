// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The figures of a run so far, for displays: the progress line and the export of live figures.
#pragma once

#include <mutex>
#include <utility>

#include "loop/op_stats.hpp"
#include "measure/histogram.hpp"
#include "system/clock.hpp"

namespace doorbell::measure {

/// Sums since the first phase of a cell, and its rate.
struct LiveFigures {
  u64 operations = 0;
  u64 bytes = 0;
  OpCounters counters;   ///< only of a board that is detailed(), and of phases on CPU threads while they last
  Histogram latency;     ///< the same
  double ops_per_s = 0;  ///< over about the last second; the board works it out
};

/// Where a run writes its figures, and displays read them. A run writes ten times a second or less, from the
/// thread that watches its initiators; those never touch it.
class LiveBoard {
 public:
  /// `detailed`: a reader wants more than `operations` and `bytes`.
  explicit LiveBoard(bool detailed = false) : detailed_(detailed) {}

  [[nodiscard]] bool detailed() const { return detailed_; }
  /// Any thread.
  void publish(LiveFigures figures) { publish(std::move(figures), static_cast<double>(wall_ns()) * 1e-9); }
  /// At a time in seconds of the clock.
  void publish(LiveFigures figures, double now_s) {
    const std::scoped_lock lock(mutex_);
    figures.ops_per_s = figures_.ops_per_s;
    figures_ = std::move(figures);
    // A new cell begins at 0 again.
    if (figures_.operations < since_.operations || since_.s == 0) since_ = {now_s, figures_.operations};
    if (now_s - since_.s < kRateS) return;
    figures_.ops_per_s = static_cast<double>(figures_.operations - since_.operations) / (now_s - since_.s);
    since_ = {now_s, figures_.operations};
  }
  /// Any thread. A copy.
  [[nodiscard]] LiveFigures figures() const {
    const std::scoped_lock lock(mutex_);
    return figures_;
  }
  /// Any thread.
  [[nodiscard]] u64 operations() const {
    const std::scoped_lock lock(mutex_);
    return figures_.operations;
  }

 private:
  static constexpr double kRateS = 1;
  struct Since {
    double s = 0;
    u64 operations = 0;
  };

  bool detailed_;
  mutable std::mutex mutex_;
  LiveFigures figures_;
  Since since_;
};

}  // namespace doorbell::measure
