// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The outcome of one run of a cell: a line of results.jsonl.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/error.hpp>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::sweep {

inline constexpr const char* kRecordSchema = "doorbell.sweep/1";
/// The exit code of a run that was asked to stop and whose data were good.
inline constexpr int kInterrupted = static_cast<int>(ExitCode::interrupted);

struct Record {
  u32 cell = 0;
  u32 round = 0;
  nlohmann::ordered_json options = nlohmann::ordered_json::object();  ///< as in the plan
  int exit_code = 0;  ///< of the run; 128 or more for a signal
  double wall_s = 0;
  std::string ended = "exit";     ///< exit, signal, timeout (--cell-timeout), interrupted (Ctrl-C, or a
                                  ///< signal to the run itself)
  std::string error;              ///< standard error of a run that failed
  nlohmann::ordered_json result;  ///< the whole Result; null if there is none

  /// True if the cell need not run again, because there is a Result of a whole run.
  [[nodiscard]] bool complete() const;
  /// 0, 1, 2, 77 or 130 (interrupted). Every other end of a run, and a run that does not end, is 2.
  [[nodiscard]] int code() const;
};

[[nodiscard]] std::string to_line(const Record& record);

/// The lines of a results.jsonl. An incomplete last line (the machine went down) is left out, and `torn` is
/// set. Throws doorbell::Error for any other line that is not a record.
struct Records {
  std::vector<Record> list;
  bool torn = false;
};
[[nodiscard]] Records parse_records(std::string_view text, const std::string& name);

/// Header and rows of runs.csv: the sweep's columns, then those of every CSV. A run without a Result has one
/// row.
[[nodiscard]] std::string csv_header();
[[nodiscard]] std::string csv_rows(const Record& record);

}  // namespace doorbell::sweep
