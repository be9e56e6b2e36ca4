// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Pieces that the blocks (text.hpp) and the table of cells (cell_table.hpp) have in common.
#pragma once

#include <string>
#include <string_view>

#include "report/paint.hpp"
#include "report/result.hpp"
#include "report/units.hpp"

namespace doorbell::report {

/// "  name      text\n"; the names line up under each other.
[[nodiscard]] std::string labelled(std::string_view name, std::string_view text);

/// "51.20 MB"
[[nodiscard]] std::string bytes_text(u64 bytes);

/// "cxi-model0 (software model)"
[[nodiscard]] std::string device_text(const Cell& c);

/// The data that was checked, the count of each kind of failure, and the first failures.
[[nodiscard]] std::string verify_lines(const Verify& v, const Paint& paint);

/// Errors by class; "none" without any.
[[nodiscard]] std::string errors_line(const Counts& errors, const Paint& paint);

/// The cells that were measured in turns, one a line, with the first one's ratios to each; "" if there are no
/// such cells. `narrow`: within 100 columns, without the figures that the table of cells has.
[[nodiscard]] std::string comparison_table(const Result& result, Look look, bool narrow);

}  // namespace doorbell::report
