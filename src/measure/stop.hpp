// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ctrl-C: the first signal asks a run to stop and report, the same signal a second later not to await what is
// in flight either, and a third a second after that ends the process.
#pragma once

#include <doorbell/config.hpp>

#include <atomic>

namespace doorbell::measure {

/// Set by signals, read by every loop. Thread rule: all calls but install() and uninstall() may come from
/// any thread; request() may also come from a signal handler.
class StopFlag {
 public:
  StopFlag() = default;
  ~StopFlag();
  StopFlag(const StopFlag&) = delete;
  StopFlag& operator=(const StopFlag&) = delete;

  [[nodiscard]] bool requested() const noexcept { return signal_.load(std::memory_order_relaxed) != 0; }
  /// Asked a second time: what is in flight is not awaited either.
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_.load(std::memory_order_relaxed); }
  /// The signal that asked, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_.load(std::memory_order_relaxed); }
  /// One request often comes as several signals: timeout(1) signals its child and then the child's group, and
  /// others send SIGTERM after SIGINT. So a signal counts as a further request only when the same one came
  /// before, and no new request for this long.
  static constexpr u64 kNextRequestNs = 1'000'000'000;

  /// Asks to stop. False for a third request: the process shall end now. `now_ns` is a time of
  /// CLOCK_MONOTONIC.
  bool request(int signal, u64 now_ns) noexcept;
  bool request(int signal) noexcept;

  /// Routes SIGINT, SIGTERM and SIGHUP (unless it is ignored, as nohup has it) to this flag until uninstall()
  /// or its end of life; a third request exits with 130. One flag at a time: throws doorbell::Error when
  /// another is installed.
  void install();
  /// The same without the signals, which are the calling program's: for stop_requested() alone.
  void install_without_signals();
  void uninstall() noexcept;

 private:
  std::atomic<int> signal_{0};
  bool takes_signals_ = false;
  std::atomic<bool> gave_up_{false};
  std::atomic<u64> seen_{0};     ///< a bit for each signal that came
  std::atomic<u64> last_ns_{0};  ///< when the last request, or new kind of signal, came
  static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
                    std::atomic<u64>::is_always_lock_free,
                "a signal handler stores them");
};

/// Whether the installed flag, if there is one, has been asked to stop: for long work of set-up.
[[nodiscard]] bool stop_requested() noexcept;
/// Whether it has been asked a second time.
[[nodiscard]] bool stop_gave_up() noexcept;

}  // namespace doorbell::measure
