// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result as a person reads it.
#pragma once

#include <string>

#include "report/result.hpp"

namespace doorbell::report {

/// Every cell as a block of lines (title, metrics, verification, errors, cost, spread), then the warnings
/// and, as the last line, the verdict. `colour` adds ANSI colours: pass isatty() of where the text goes. Text
/// that came from a device or a command line is printed without its control characters.
[[nodiscard]] std::string to_text(const Result& result, bool colour = false);

/// One cell of the same.
[[nodiscard]] std::string to_text(const Cell& cell, bool colour = false);

/// Everything that went wrong, and nothing else: the cells that failed with their first failures, the
/// warnings, the verdict. For standard error, where the rest is not printed.
[[nodiscard]] std::string failure_text(const Result& result);

}  // namespace doorbell::report
