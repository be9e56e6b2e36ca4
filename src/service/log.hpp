// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The daemon's log. An entry is a sentence, and fields by which it can be searched.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace doorbell::service {

/// syslog's numbers.
enum class Priority : int { error = 3, warning = 4, notice = 5, info = 6, debug = 7 };

struct LogEntry {
  Priority priority = Priority::info;
  std::string text;
  std::vector<std::pair<std::string, std::string>> fields =
      {};  ///< names in capitals, as the journal has them
  /// Who has caused it, where a user can cause as many as he likes.
  std::optional<uid_t> user = {};
};

class Log {
 public:
  virtual ~Log() = default;
  virtual void write(const LogEntry& entry) = 0;
  /// Waits until all that was given is written, but not for ever: before a process ends.
  virtual void flush() {}
  /// Entries that were not written.
  [[nodiscard]] virtual u64 lost() const noexcept { return 0; }
};

}  // namespace doorbell::service
