// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result as JSON: schema doorbell.results/1, defined by schema/results-1.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/result.hpp"

namespace doorbell::report {

inline constexpr const char* kSchema = "doorbell.results/1";

/// The whole record. What is unknown or not finite is null. A cell's `parts` go to cell[path][name].
/// Throws doorbell::Error when a path's own key takes the name of a common one or is not an object.
[[nodiscard]] nlohmann::ordered_json to_json(const Result& result);

/// One population, as `metrics` holds it.
[[nodiscard]] nlohmann::ordered_json to_json(const Metrics& metrics);

/// Readable text: objects indented by two, arrays without objects on one line, ASCII only, strings that are
/// not UTF-8 with replacement characters.
[[nodiscard]] std::string to_string(const nlohmann::ordered_json& json);

/// The same on one line, for results.jsonl.
[[nodiscard]] std::string to_line(const nlohmann::ordered_json& json);

/// The record as a file (write_file's rules; "-" is stdout).
void write_json(const Result& result, const std::string& path);

}  // namespace doorbell::report
