// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ctrl-C: the first signal asks a run to stop and report, the second ends the process at once.
#pragma once

#include <atomic>

namespace doorbell::measure {

/// Set once, read by every loop. Thread rule: all calls but install() and uninstall() may come from
/// any thread; request() may also come from a signal handler.
class StopFlag {
 public:
  StopFlag() = default;
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  [[nodiscard]] bool requested() const noexcept { return signal_.load(std::memory_order_relaxed) != 0; }
  /// The signal that asked, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_.load(std::memory_order_relaxed); }
  /// Asks to stop. False when that was asked before.
  bool request(int signal) noexcept;

  /// Routes SIGINT and SIGTERM to this flag until uninstall() or its end of life; a second signal exits
  /// with 130. One flag at a time: throws doorbell::Error when another is installed.
  void install();
  void uninstall() noexcept;

 private:
  std::atomic<int> signal_{0};
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores it");
};

}  // namespace doorbell::measure
