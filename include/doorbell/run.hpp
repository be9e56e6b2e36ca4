// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A run as a call: the work of `doorbell nvme`, `rdma`, `cxi`, `net`, `qdma`, `qdma-validate` or `qdma-tune`,
// with the same options by the same names. Host code only.
//
//   const doorbell::RunResult r = doorbell::run("nvme", {{"controller", "model"}, {"duration", "1"}});
//   for (const doorbell::RunCell& c : r.cells)
//     std::printf("%.0f operations/s, %s\n", c.figures.operations_per_s, r.verdict.c_str());
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace doorbell {

/// Names and values, as after `--` on the command line: {"in-flight", "32"}; '_' counts as '-'. The value of
/// an option without one is "true" (or empty); "false" leaves it out. Both stand for "on" and "off", too.
/// Files of json, csv, html and junit are written.
using OptionValues = std::vector<std::pair<std::string, std::string>>;

/// How a run is watched. All calls come from the thread that called run(), at most some ten a second while
/// phases last.
struct RunHooks {
  /// `share` of the phase under way that is done, 0..1 (NaN: no end is known); `phase` in words; operations
  /// in all.
  std::function<void(double share, const std::string& phase, u64 operations)> progress = {};
  /// Asks the run to end early, from any thread; its Result is partial then (stop_reason "signal").
  std::stop_token stop = {};
};

/// Of one population of operations. Latencies are in ns; empty where they were not measured, and a percentile
/// with fewer than 10 operations above it.
struct RunFigures {
  u64 operations = 0;           ///< completed
  u64 bytes = 0;                ///< payload of these
  double elapsed_s = 0;         ///< what the rates are over
  double operations_per_s = 0;  ///< operations / elapsed_s
  double bytes_per_s = 0;       ///< bytes / elapsed_s
  /// @name Latencies in ns
  /// @{
  std::optional<double> min_ns, mean_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns;
  /// @}
};

/// Verification, in operations.
struct RunChecks {
  std::string mode = {};  ///< "full", "sample=P" or "none"
  u64 checked = 0;        ///< compared with what had been written
  u64 checked_bytes = 0;  ///< payload of these
  u64 unverifiable = 0;   ///< of data that is not known to have been written: no failure
  /// @name Wrong, by class: pattern::Verdict says what each means; duplicated ones completed twice
  /// @{
  u64 corrupt = 0, misplaced = 0, stale = 0, duplicated = 0, missing = 0;
  /// @}
  /// Those of all classes.
  [[nodiscard]] u64 failed() const { return corrupt + misplaced + stale + duplicated + missing; }
};

/// One combination of parameters, measured.
struct RunCell {
  std::string path = {};       ///< "nvme"
  std::string operation = {};  ///< one of those that the figures count: "operation", or "packet"
  std::map<std::string, std::string> parameters = {};  ///< those that make the cell: {"in_flight", "32"}
  std::string initiator = {};                          ///< "cpu" or "gpu"
  std::string device_kind = {};                        ///< "model", "emulated", "hardware" or "kernel"
  std::string device = {};                             ///< its full name
  RunFigures figures = {};                             ///< of the median repeat, by rate
  std::vector<std::pair<std::string, RunFigures>> parts = {};  ///< inside it, by name: "write", "read"
  std::vector<double> repeats_operations_per_s = {};           ///< of each repeat, in order
  RunChecks checks = {};                                       ///< of all repeats together
  std::map<std::string, u64> errors = {};  ///< by class; all classes of the path, most of them 0
};

/// The outcome of a run.
struct RunResult {
  int exit_code = 0;             ///< ExitCode: 0, or 2 for lost, late or wrong data, ...
  std::string verdict = {};      ///< the sentence at the end of the table: "OK", "FAILED: 3 corrupt", ...
  bool complete = true;          ///< false: ended before its work was done
  std::string stop_reason = {};  ///< "done", "signal", "error", "timeout", "reset" or "removed"
  std::vector<std::string> warnings = {};  ///< sentences: what the machine or the options made of the figures
  std::vector<RunCell> cells = {};         ///< in the order in which they were measured
  std::string json = {};                   ///< the whole record, schema/results-1.schema.json
};

/// Measures, and returns when all is done. A run whose data was wrong returns, with its exit_code.
/// Throws Error for what it refuses (a path or an option that is unknown, a value out of range, a device that
/// is absent: Error::code() is ExitCode::absent); nothing has been touched then. Thread rule: one run at a
/// time in a process; a second one is refused. Raises the process's soft limit of open files to the hard one.
[[nodiscard]] RunResult run(const std::string& path, const OptionValues& options = {},
                            const RunHooks& hooks = {});

}  // namespace doorbell
