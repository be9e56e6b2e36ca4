// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Units of published tables and of doorbell's figures, so that both fit into one column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::sweep {

struct Unit {
  std::string name;
  std::string quantity;  ///< "time", "rate", "bandwidth", "share", "number"
  double factor = 1;     ///< one unit in s, operations per s, bytes per s, parts of 1
};

/// Finds a unit by its name ("us", "MB/s"); empty if unknown.
[[nodiscard]] std::optional<Unit> find_unit(std::string_view name);
[[nodiscard]] std::vector<std::string> unit_names();

/// The unit in a path into a Result: "latency_ns.mean" is in ns.
[[nodiscard]] Unit unit_of_path(std::string_view path);

}  // namespace doorbell::sweep
