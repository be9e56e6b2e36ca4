// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Text for whoever reads it: a terminal breaks long lines within words, so they are broken between them
// before.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace doorbell::cli {

/// The columns of the terminal that `out` is, or 80.
[[nodiscard]] std::size_t columns_of(std::FILE* out);

/// The width of tables that are printed to `out`: of a terminal as many columns as it has, at most `most`.
[[nodiscard]] std::size_t table_columns(std::FILE* out, std::size_t most);

/// Lines that are longer than `columns` broken at spaces; what follows is indented by two more than its line.
/// Colours have no width. A longer word stays whole.
[[nodiscard]] std::string folded(std::string_view text, std::size_t columns);

/// Prints the text, folded if `out` is a terminal. Files and pipes get the lines whole.
void print(std::FILE* out, std::string_view text);

}  // namespace doorbell::cli
