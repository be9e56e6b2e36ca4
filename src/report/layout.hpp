// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Figures and columns of text tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::report {

/// Text from elsewhere, for a terminal: what a device or another process calls itself must not move the
/// cursor. Each byte of a control character (C0, DEL, C1) or of what is not UTF-8 becomes '?'.
[[nodiscard]] std::string printable(std::string_view text);

/// The columns that a text takes on a terminal: its characters, without colours (ESC [ ... m).
[[nodiscard]] std::size_t columns(std::string_view text);

/// Four significant digits, three below 1, whole from a thousand on: "12345", "123.4", "0.0831"; "-" for what
/// is not finite.
[[nodiscard]] std::string digits(double v);
/// The same of v in units of `unit`; "-" without a value.
[[nodiscard]] std::string digits(const std::optional<double>& v, double unit = 1);

/// A unit for a whole column, chosen by its largest value.
struct Scale {
  double unit = 1;
  const char* prefix = "";
};
[[nodiscard]] Scale scale_for(double largest);

/// Rows of text, indented by two; the first column is left-aligned, the others right-aligned.
[[nodiscard]] std::string table(const std::vector<std::vector<std::string>>& rows);

}  // namespace doorbell::report
