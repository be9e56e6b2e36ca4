// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Figures that others published, found for our cells. They come from other machines: they are shown beside
// ours and never computed with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sweep/cells.hpp"
#include "sweep/csv_file.hpp"
#include "sweep/plan.hpp"

namespace doorbell::sweep {

/// One published row: the plan's column names, and numbers in the reference's unit.
struct Published {
  int line = 0;
  std::map<std::string, double> figures;  ///< "mean", "std", ...; an empty field is absent
};

struct ReferenceTable {
  Reference reference;
  std::vector<std::optional<Published>> rows;  ///< by cell
};

/// Finds each cell's row. Throws doorbell::Error for a column that the file does not have, a field that is no
/// number, a row in another unit, two rows for one cell, and when no cell has a row.
[[nodiscard]] ReferenceTable match_reference(const Plan& plan, const Reference& reference,
                                             const CsvFile& file, const std::vector<Cell>& cells);

/// All of a plan's references, from their files beside the plan.
[[nodiscard]] std::vector<ReferenceTable> load_references(const Plan& plan, const std::vector<Cell>& cells);

}  // namespace doorbell::sweep
