// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Figures that others published, matched to the cells of a sweep. They come from other machines: they are
// shown next to the sweep's figures, but never used in calculations.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/cells.hpp"
#include "sweep/csv_file.hpp"
#include "sweep/plan.hpp"

namespace doorbell::sweep {

/// One published row: columns by the names that the plan gives them, and numbers in the reference's unit.
struct Published {
  int line = 0;
  std::map<std::string, double> figures;  ///< "mean", "std", ...; without empty fields
};

struct ReferenceTable {
  Reference reference;
  std::vector<std::optional<Published>> rows;  ///< by cell
};

/// Finds each cell's row. Throws doorbell::Error for a column that the file does not have, a field that is
/// not a number, a row in another unit, two rows for one cell, and if no cell has a row.
[[nodiscard]] ReferenceTable match_reference(const Plan& plan, const Reference& reference,
                                             const CsvFile& file, const std::vector<Cell>& cells);

/// Reads all of a plan's references; the files' names are relative to the plan.
[[nodiscard]] std::vector<ReferenceTable> load_references(const Plan& plan, const std::vector<Cell>& cells);

}  // namespace doorbell::sweep
