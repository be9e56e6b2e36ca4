// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result as CSV (RFC 4180 quoting, comma, dot decimal, LF): one row per cell and repeat. Empty means
// unknown.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "report/result.hpp"

namespace doorbell::report {

/// The column names, with the line end.
[[nodiscard]] std::string csv_header();

/// One row per repeat, in the header's order. A cell without repeats (interrupted in its warm-up) gives one
/// row of its metrics with an empty `repeat`. `index` is the cell's number in its Result, `warnings` what
/// that warns of (warnings_field()).
[[nodiscard]] std::string csv_rows(const Cell& cell, std::size_t index, const std::string& warnings = {});

/// The same from a cell's JSON. `before` begins each row: columns of the caller, commas included.
[[nodiscard]] std::string csv_rows(const nlohmann::ordered_json& cell, std::size_t index,
                                   const std::string& before = {}, const std::string& warnings = {});

/// A Result's warnings in one field: a figure of a machine too busy to measure must not lose that on its way.
[[nodiscard]] std::string warnings_field(const nlohmann::ordered_json& warnings);

[[nodiscard]] std::string to_csv(const Result& result);

/// Header and rows as a file (write_file's rules; "-" is stdout).
void write_csv(const Result& result, const std::string& path);

/// "block_bytes=4096;depth=64": a cell's swept parameters in one field. A ';', '=' or '\' inside a name or
/// a value carries a '\' before it. Nested values are compact JSON.
[[nodiscard]] std::string parameters_of(const nlohmann::ordered_json& cell,
                                        const std::string& separator = ";");

}  // namespace doorbell::report
