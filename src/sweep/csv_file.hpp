// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reading CSV (RFC 4180) with a header line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::sweep {

struct CsvRow {
  int line = 0;  ///< from 1; the first line if a row has several
  std::vector<std::string> fields;
};

struct CsvFile {
  std::string name;
  std::vector<std::string> header;
  std::vector<CsvRow> rows;  ///< each has as many fields as the header

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

/// Throws doorbell::Error with the line number, for invalid CSV or for a row whose number of fields differs
/// from the header's.
[[nodiscard]] CsvFile parse_csv(std::string_view text, const std::string& name);

}  // namespace doorbell::sweep
