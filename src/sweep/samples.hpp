// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The figures of measured cells, run by run, read from result files. A run is one process: what differs
// between processes (where the kernel put their threads and memory) is the same for all repeats of one run.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace doorbell::sweep {

/// Why a cell's figures are not valid, each reason with a number: "corrupt" 3.
using Failures = std::map<std::string, double>;
/// The circumstances of a measurement, by name; more than one value if they changed between runs.
using Facts = std::map<std::string, std::set<std::string>>;

/// The identity of a cell. The device is not part of it, so that two devices can be compared.
struct CellKey {
  std::string path = {};
  nlohmann::ordered_json parameters = {};  ///< the cell's; of a sweep, the options from its plan
  std::string way = {};                    ///< of doing the work ("beside")
  nlohmann::ordered_json own =
      {};  ///< the cell's parameters, where a plan's options are those of several cells
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::string group() const;  ///< Samples::group
};

/// The figures of one cell over all of its runs.
struct Samples {
  CellKey key;
  std::string label;  ///< path and parameters
  std::string group;  ///< options from the sweep's plan, which runs without a Result have too
  std::size_t runs = 0;
  /// By metric ("ops_per_s"), one value for each run: the median of its repeats; empty if no repeat has it.
  std::map<std::string, std::vector<std::optional<double>>> metrics;
  std::map<std::string, std::vector<double>> repeats;  ///< the same of every repeat of every run
  Failures failures;
  bool bad_data = false;             ///< errors or verification failures among them
  Facts facts;                       ///< device, initiator, verification, options
  std::set<std::string> given;       ///< options on the command lines
  std::set<std::string> operations;  ///< what the figures count: "packet", "operation"
};

/// A warning in Results.
struct Warning {
  std::string text;       ///< as in one of the Results
  std::size_t count = 0;  ///< number of Results that have it, with any numbers in it
};

struct Measured {
  std::string name;
  std::map<std::string, Samples> cells;  ///< by a key that is the same for the same cell in another file
  std::vector<std::string> order;        ///< keys in the order of their appearance
  std::size_t runs = 0;                  ///< Results, and runs of a sweep without one
  /// Runs of a sweep that have no Result, by Samples::group.
  struct WithoutResult {
    Failures failures;
    bool bad_data = false;
    nlohmann::ordered_json options = {};  ///< from the sweep's plan
  };
  std::map<std::string, WithoutResult> without_result;
  Facts facts;                              ///< the build and the machine
  std::map<std::string, Warning> warnings;  ///< by their text without numbers
  std::vector<std::string> files;           ///< the files that were read
  std::set<std::size_t> seen;               ///< hashes of the runs that were read
};

/// Options that say where a Result goes, and not how it is made.
[[nodiscard]] bool is_output(const std::string& option);

/// Names of the metrics that a repeat has.
[[nodiscard]] const std::vector<std::string>& metric_names();
/// True if more of this metric is better.
[[nodiscard]] bool more_is_better(const std::string& metric);

/// Reads a Result (.json); lines of Results or of a sweep's records (.jsonl); or a folder with such files
/// (results.jsonl before any other). Each Result is one run. Throws doorbell::Error.
[[nodiscard]] Measured load_measured(const std::string& path);

/// Adds a Result as one run of its cells. For a sweep's cell, the plan's options replace the cell's
/// parameters, because a plan may vary options that are not parameters. Throws doorbell::Error if this is not
/// a Result.
void add_result(const nlohmann::ordered_json& result, const std::string& name, Measured* to,
                const nlohmann::ordered_json& options = nullptr);

}  // namespace doorbell::sweep
