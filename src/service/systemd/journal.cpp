// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/systemd/journal.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include <cerrno>

#include "service/queued_log.hpp"
#include "system/sysfs.hpp"

namespace doorbell::service {

namespace {

constexpr const char* kJournalSocket = "/run/systemd/journal/socket";

class JournalLog final : public Log {
 public:
  void write(const LogEntry& entry) override {
    std::vector<std::string> lines = {"MESSAGE=" + entry.text,
                                      fmt::format("PRIORITY={}", static_cast<int>(entry.priority)),
                                      "SYSLOG_IDENTIFIER=doorbelld"};
    for (const auto& [key, value] : entry.fields) lines.push_back("DOORBELLD_" + key + "=" + value);
    std::vector<iovec> parts;
    for (std::string& line : lines) parts.push_back({line.data(), line.size()});
    static_cast<void>(sd_journal_sendv(parts.data(), static_cast<int>(parts.size())));
  }
};

/// Lines of "<N>text", as systemd understands them, with the fields behind.
class StderrLog final : public Log {
 public:
  void write(const LogEntry& entry) override {
    std::string line = fmt::format("<{}>{}", static_cast<int>(entry.priority), entry.text);
    for (const auto& [key, value] : entry.fields) line += fmt::format(" {}={}", key, value);
    line += '\n';
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) throw Error("standard error", reason(errno));
  }
};

}  // namespace

std::unique_ptr<Log> open_log(std::string_view which, Priority least, const std::string& name) {
  const bool there = ::access(kJournalSocket, W_OK) == 0;
  if (which == "journal" && !there) throw Error(name + " journal", "this machine has no journal");
  if (which == "journal" || (which == "auto" && there && ::isatty(STDERR_FILENO) != 1))
    return std::make_unique<QueuedLog>(std::make_unique<JournalLog>(), least);
  return std::make_unique<QueuedLog>(std::make_unique<StderrLog>(), least);
}

}  // namespace doorbell::service
