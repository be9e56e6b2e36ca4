// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The units of figures in texts: one for a whole column, the same in every table of the program.
#pragma once

#include <span>
#include <string>

#include "report/result.hpp"

namespace doorbell::report {

/// A Result's operation that is a packet (Cell::operation).
inline constexpr const char* kPacket = "packet";

struct ColumnUnit {
  std::string name;
  double unit = 1;  ///< a figure is divided by it
};

/// Of rates: thousands of I/Os or of other operations (kIOPS), millions of packets (Mpps), or, where both are
/// among the cells, thousands of either (k ops/s).
[[nodiscard]] ColumnUnit rate_unit(bool packets, bool others);
[[nodiscard]] ColumnUnit rate_unit(std::span<const Cell> cells);
/// Of payload: GB/s, or with `bits` Gb/s, 10^9 of them a second.
[[nodiscard]] ColumnUnit bandwidth_unit(bool bits);

/// Lines of tables are at most this wide; only a word of a name that is longer itself passes it.
inline constexpr std::size_t kTableColumns = 100;

/// How a text is printed. `colour`: with ANSI colours; pass isatty() of where the text goes. `bits`: payload
/// in bits. `columns`: as kTableColumns, for a narrower terminal.
struct Look {
  Look(bool with_colour = false, bool in_bits = false,  // NOLINT(google-explicit-constructor): "with colours"
       std::size_t in_columns = kTableColumns)
      : colour(with_colour), bits(in_bits), columns(in_columns) {}
  bool colour, bits;
  std::size_t columns;
};

}  // namespace doorbell::report
