// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A line on the terminal that shows the progress of a long run.
#pragma once

#include <chrono>
#include <cstdio>
#include <string_view>

namespace doorbell::cli {

/// Draws on `out`, at most ten times a second, and leaves an empty line at the end. Thread rule: one thread
/// at a time. A disabled object does nothing.
class Progress {
 public:
  /// `enabled`: the stream is a terminal and the user did not ask for --quiet.
  explicit Progress(bool enabled, std::FILE* out = stderr) : out_(out), enabled_(enabled) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `fraction` in 0..1; anything outside, or NaN, draws no bar.
  void update(double fraction, std::string_view text);
  /// Removes the line; call before printing anything else.
  void clear();

 private:
  std::FILE* out_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace doorbell::cli
