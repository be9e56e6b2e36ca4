// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What measured cells delivered, run by run, read from result files. A run is one process: what differs
// between processes (where the kernel put its threads and its memory) is the same for all repeats of one.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace doorbell::sweep {

/// Why a cell's figures do not count, each with a number: "corrupt" 3.
using Failures = std::map<std::string, double>;
/// What something was measured with, by name; more than one value when it changed between runs.
using Facts = std::map<std::string, std::set<std::string>>;

/// What one cell measured, over all of its runs.
struct Samples {
  std::string label;  ///< path and parameters
  std::string group;  ///< the options that a sweep's plan gave; a run without a Result has nothing else
  std::size_t runs = 0;
  /// By metric ("ops_per_s"), one a run: the median of its repeats; empty where none has it.
  std::map<std::string, std::vector<std::optional<double>>> metrics;
  Failures failures;
  bool bad_data = false;  ///< errors or verification failures among them
  Facts facts;            ///< device, initiator, verification, options
};

/// A warning that Results carry.
struct Warning {
  std::string text;       ///< as one of them has it
  std::size_t count = 0;  ///< how many do, whatever numbers stand in it
};

struct Measured {
  std::string name;
  std::map<std::string, Samples> cells;  ///< by what makes a cell the same one in another file
  std::vector<std::string> order;        ///< keys as they came
  std::size_t runs = 0;                  ///< results, and runs of a sweep that left none
  /// Runs of a sweep that left no Result, by Samples::group.
  struct Lost {
    Failures failures;
    bool bad_data = false;
  };
  std::map<std::string, Lost> lost;
  Facts facts;                              ///< the build and the machine
  std::map<std::string, Warning> warnings;  ///< by their text without its numbers
  std::vector<std::string> files;           ///< what was read
};

/// Names of the metrics that a repeat has.
[[nodiscard]] const std::vector<std::string>& metric_names();
/// More of it is better.
[[nodiscard]] bool more_is_better(const std::string& metric);

/// Reads a Result (.json), Results or a sweep's records a line (.jsonl), or a folder that holds either
/// (results.jsonl before any other). Each Result is one run. Throws doorbell::Error.
[[nodiscard]] Measured load_measured(const std::string& path);

/// Adds a Result as one run of its cells. The options of a sweep's cell stand in for its parameters: a plan
/// may vary what is none. Throws doorbell::Error for what is no Result.
void add_result(const nlohmann::ordered_json& result, const std::string& name, Measured* to,
                const nlohmann::ordered_json& options = nullptr);

}  // namespace doorbell::sweep
