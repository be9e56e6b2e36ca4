// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A line on the terminal that shows the progress of a long run.
#pragma once

#include <doorbell/config.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace doorbell::cli {

/// How fast work goes on, and when it will be done.
class Pace {
 public:
  /// The state at a time in seconds of any clock: the share that is done (NaN: the work has no end), and
  /// operations in all (0: not known). A share or a number that falls begins something new.
  void note(double now_s, double fraction, u64 operations);
  /// "1.234 MIOPS, 42 s left"; without what is not known yet.
  [[nodiscard]] std::string text() const;

 private:
  static constexpr double kRateS = 0.5;        ///< least time that a rate is taken over
  static constexpr double kEstimateS = 1;      ///< least time that an estimate is made from,
  static constexpr double kLeastShare = 0.01;  ///< and least share of the work

  struct At {
    double s = 0;
    double fraction = 0;
    u64 operations = 0;
  };
  bool begun_ = false;
  At begin_;  ///< of this piece of work
  At last_;
  At rate_from_;
  std::optional<double> per_s_;
};

/// Draws on `out`, at most ten times a second, and leaves an empty line at the end. Thread rule: one thread
/// at a time. A disabled object does nothing.
class Progress {
 public:
  /// `enabled`: the stream is a terminal and the user did not ask for --quiet.
  explicit Progress(bool enabled, std::FILE* out = stderr) : out_(out), enabled_(enabled) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` in 0..1; anything outside, or NaN, draws no bar. `operations`: as Pace's.
  void update(double fraction, std::string_view text, u64 operations = 0);
  /// Removes the line; call before printing anything else.
  void clear();

 private:
  std::FILE* out_;
  bool enabled_;
  bool drawn_ = false;
  Pace pace_;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace doorbell::cli
