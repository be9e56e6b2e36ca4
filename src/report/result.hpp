// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The one record that a command produces. Text (text.hpp), CSV (csv.hpp) and JSON (json.hpp) are views
// of it; the JSON form is defined by schema/results-1.schema.json. Every key carries its unit.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "loop/op_stats.hpp"

namespace doorbell::report {

/// Latency of one population of operations. Percentiles with fewer than 10 samples above them, and
/// everything when nothing was timed per operation, are empty: null in JSON and "-" in text.
struct Latency {
  u64 count = 0;
  std::optional<double> min, mean, std, p50, p90, p95, p99, p99_9, p99_99, max;  // ns
  std::vector<std::pair<u64, u64>> bins;  ///< {lower bound in ns, count}, non-empty buckets only
};

struct Metrics {
  u64 ops = 0;
  u64 bytes = 0;
  double elapsed_s = 0;
  double ops_per_s = 0;
  double bytes_per_s = 0;
  Latency latency_ns;
};

/// Mean ns per operation of each part of its life; empty where it was not measured.
struct Substeps {
  std::optional<double> payload, build, enqueue, sq_doorbell, cq_poll, cq_doorbell, total;
};

/// Verification counts are in I/Os (an I/O of many blocks counts once, by its first bad block).
struct Verify {
  std::string mode = "none";  ///< "full", "sample=P" or "none"
  u64 checked = 0;
  u64 checked_bytes = 0;
  u64 unverifiable = 0;  ///< these blocks were never written: not a failure
  u64 corrupt = 0;
  u64 misplaced = 0;
  u64 stale = 0;
  u64 duplicated = 0;
  u64 missing = 0;
  struct Occurrence {
    std::string kind;
    u64 address = 0;   ///< byte address on the device
    u64 sequence = 0;  ///< the sequence that was due
  };
  std::vector<Occurrence> first;  ///< the first few failures

  /// The classes of failures by their names, in the order in which views show them.
  using Failure = std::pair<const char*, u64 Verify::*>;
  static constexpr Failure kFailures[] = {{"corrupt", &Verify::corrupt},
                                          {"misplaced", &Verify::misplaced},
                                          {"stale", &Verify::stale},
                                          {"duplicated", &Verify::duplicated},
                                          {"missing", &Verify::missing}};
  [[nodiscard]] u64 failed() const {
    u64 sum = 0;
    for (const auto& [kind, count] : kFailures) sum += this->*count;
    return sum;
  }
};

/// Errors by class; a class that did not occur is present with 0.
using Counts = std::map<std::string, u64>;

struct Cost {
  double cpu_user_s = 0;
  double cpu_system_s = 0;
  std::optional<double> cpu_ns_per_op;
  /// Over which processor time was counted: longer than Metrics::elapsed_s by what comes before the first
  /// operation and behind the last one (making and checking data, waiting for what never comes).
  std::optional<double> elapsed_s;
  struct Thread {
    std::string name;
    double cpu_s = 0;
  };
  std::vector<Thread> threads;
  std::optional<double> gpu_sm_percent;
  std::optional<double> doorbells_per_op;
  std::optional<double> polls_per_completion;
  /// Of threads that only make and check payloads; the other figures are without theirs.
  struct Checking {
    double cpu_ns_per_op = 0;
    double useful_share = 0;  ///< of their time, how much had something to check
  };
  std::optional<Checking> checking;
};

struct Repeat {
  u64 seed = 0;
  double ops_per_s = 0;
  double bytes_per_s = 0;
  std::optional<double> mean_ns, p50_ns, p99_ns, p99_9_ns;
  u64 errors = 0;
};

/// One metric over the repeats; measure::spread_of() makes it. The interval is the median's, between two
/// order statistics, and `ci_level` is its exact coverage as a fraction (0.984; 0 for a single repeat).
struct Spread {
  double median = 0, ci_low = 0, ci_high = 0, ci_level = 0;
  double min = 0, max = 0, mean = 0;
  std::optional<double> std;  ///< sample standard deviation; empty for a single repeat
  bool noisy = false;         ///< (max - min) / median is above 5 %
  std::vector<u64> outliers;  ///< repeats (from 0) further than 3 scaled MAD from the median; never dropped
};

struct Cell {
  std::string path;                     ///< "nvme", "rdma", ...
  std::string operation = "operation";  ///< one of those that the figures count: "packet" has its own unit
  nlohmann::ordered_json cell;          ///< the swept parameters
  nlohmann::ordered_json options;       ///< every resolved option
  std::string initiator_kind = "cpu";   ///< or "gpu"
  std::optional<int> gpu;               ///< the GPU's index, for a GPU initiator
  std::string device_kind;  ///< "model", "emulated", "hardware" or "kernel" (a file, through system calls)
  std::string device_name;
  Metrics metrics;  ///< of the median repeat (by ops_per_s)
  /// Populations inside `metrics`, by name ("write", "read"): rows of the text, and cell[path][name] in JSON.
  std::vector<std::pair<std::string, Metrics>> parts;
  Substeps substeps_ns;
  std::vector<Repeat> repeats;
  std::map<std::string, Spread> spread;
  Verify verify;
  Counts errors;
  Cost cost;
  nlohmann::ordered_json extra = nlohmann::ordered_json::object();  ///< the path's own sub-objects, by key
};

/// A kind of fault that was injected into a path's model, and what its initiator found of it.
struct FaultFinding {
  std::string path;   ///< "nvme", "rdma", ...
  std::string fault;  ///< the kind's name: "drop", "corrupt", ...
  u64 injected = 0;
  u64 found = 0;
  std::string found_as;  ///< the counters in which it was found, in words
};

struct Result {
  std::vector<std::string> argv;
  nlohmann::ordered_json environment;
  StopReason stop_reason = StopReason::done;
  int exit_code = 0;
  std::vector<std::string> warnings;
  std::vector<Cell> cells;
  std::vector<FaultFinding> faults = {};  ///< of a demo only
  [[nodiscard]] bool complete() const { return stop_reason == StopReason::done; }
};

/// A Result's name for what ended its run.
[[nodiscard]] constexpr const char* name(StopReason why) {
  switch (why) {
    case StopReason::requested:
      return "signal";
    case StopReason::broken:
      return "error";
    case StopReason::timeout:
      return "timeout";
    case StopReason::reset:
      return "reset";
    case StopReason::removed:
      return "removed";
    default:
      return "done";
  }
}

}  // namespace doorbell::report
