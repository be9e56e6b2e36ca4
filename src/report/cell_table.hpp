// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result in short: one row a cell, the same columns for every path.
#pragma once

#include <string>

#include "report/result.hpp"
#include "report/units.hpp"

namespace doorbell::report {

/// The facts that all cells have in common (path, device, initiator, parameters) once; then the table: what a
/// row is, size in bytes, rate (report/units.hpp), GB/s, p50 and p99 in us, the share of packets that were
/// lost, what was checked, the row's verdict. A column has one unit. "-" is a figure that is not known. Rows
/// with errors, failures of verification or counters of faults have a number, and the reasons follow the
/// table. A single cell's parts ("write", "read") are rows below its own. Text that came from elsewhere is
/// printed without its control characters.
[[nodiscard]] std::string cell_table(const Result& result, Look look = {});

/// The table, the comparison of ways that were measured in turns, the warnings, how much was checked, and as
/// the last line the verdict.
[[nodiscard]] std::string to_short_text(const Result& result, Look look = {});

/// The lines that follow the table in to_short_text().
[[nodiscard]] std::string closing_lines(const Result& result, Look look = {});

}  // namespace doorbell::report
