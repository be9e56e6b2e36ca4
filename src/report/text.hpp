// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result as a person reads it.
#pragma once

#include <string>

#include "report/result.hpp"
#include "report/units.hpp"

namespace doorbell::report {

/// Every cell as a block of lines (title, metrics, verification, errors, cost, spread), then the warnings
/// and, as the last line, the verdict. Text that came from a device or a command line is printed without its
/// control characters.
[[nodiscard]] std::string to_text(const Result& result, Look look = {});

/// One cell of the same.
[[nodiscard]] std::string to_text(const Cell& cell, Look look = {});

/// Everything that went wrong, and nothing else: the cells that failed with their first failures, the
/// warnings, the verdict. For standard error, where the rest is not printed.
[[nodiscard]] std::string failure_text(const Result& result);

}  // namespace doorbell::report
