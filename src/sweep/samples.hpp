// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The repeats of measured cells, read from result files.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace doorbell::sweep {

/// What one cell measured, over all of its runs.
struct Samples {
  std::string label;        ///< path and parameters
  std::string measured_on;  ///< device kind and initiator
  std::string git;          ///< the build
  /// By metric ("ops_per_s"), one a repeat in order; empty where a repeat does not have it.
  std::map<std::string, std::vector<std::optional<double>>> metrics;
  double errors = 0;
};

struct Measured {
  std::string name;
  std::map<std::string, Samples> cells;  ///< by what makes a cell the same one in another file
  std::vector<std::string> order;        ///< keys as they came
  std::size_t without_result = 0;        ///< runs of a sweep that left none
};

/// Names of the metrics that a repeat has.
[[nodiscard]] const std::vector<std::string>& metric_names();
/// More of it is better.
[[nodiscard]] bool more_is_better(const std::string& metric);

/// Reads a Result (.json), Results or a sweep's records a line (.jsonl), or a folder that holds either
/// (results.jsonl before any other). Throws doorbell::Error.
[[nodiscard]] Measured load_measured(const std::string& path);

/// Adds a Result's cells. The options of a sweep's cell stand in for its parameters: a plan may vary what is
/// none.
void add_result(const nlohmann::ordered_json& result, const std::string& name, Measured* to,
                const nlohmann::ordered_json& options = nullptr);

}  // namespace doorbell::sweep
