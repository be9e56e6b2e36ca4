// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The outcome of the demo's fault checks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/path.hpp"
#include "report/result.hpp"

namespace doorbell::cli {

/// One path's checks, by the number of the fault; empty: not done.
struct FaultRow {
  std::string path;   ///< its word: "nvme"
  std::string title;  ///< its name in sentences: "NVMe"
  std::vector<std::optional<FaultCheck>> checks;
};

[[nodiscard]] inline bool matches(const FaultCheck& c) {
  return c.found == c.injected;
}

/// The checks that were done, for the Result.
[[nodiscard]] std::vector<report::FaultFinding> findings(const std::vector<FaultRow>& rows);

/// One row a path and one column a fault, "found/injected"; "-" where nothing was injected. Below it a line
/// for each mismatch. Within 100 columns.
[[nodiscard]] std::string fault_table(const std::vector<FaultRow>& rows);

/// One line a check, which says as what the initiator counted the fault.
[[nodiscard]] std::string fault_lines(const std::vector<FaultRow>& rows);

}  // namespace doorbell::cli
