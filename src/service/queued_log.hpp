// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A log that holds nobody up, whatever becomes of the place that it is written to, and that no user fills.
#pragma once

#include <doorbell/config.hpp>

#include <memory>

#include "service/log.hpp"

namespace doorbell::service {

/// Entries wait in a queue for a thread that writes them to the log behind. Any thread.
class QueuedLog final : public Log {
 public:
  /// Entries that may wait; those that come then are lost.
  static constexpr std::size_t kMostWaiting = 1024;
  /// Entries that one user may cause at once, and those a second after that.
  static constexpr u32 kBurst = 64, kPerSecond = 4;

  /// Entries of lower priority than `least` are not written. Throws Error if there is no thread to be had.
  QueuedLog(std::unique_ptr<Log> behind, Priority least);
  /// Flushes.
  ~QueuedLog() override;
  QueuedLog(const QueuedLog&) = delete;
  QueuedLog& operator=(const QueuedLog&) = delete;

  /// Neither waits nor throws.
  void write(const LogEntry& entry) noexcept override;
  /// Waits three seconds at most.
  void flush() override;
  [[nodiscard]] u64 lost() const noexcept override;
  /// Whether half of the queue is free: for those who can wait with an entry.
  [[nodiscard]] bool has_room() const noexcept;

 private:
  struct State;
  static void run(State& state);
  Priority least_;
  std::shared_ptr<State> state_;  // the thread's too, which a write may hold for ever
};

}  // namespace doorbell::service
