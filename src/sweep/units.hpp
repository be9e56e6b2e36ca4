// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Units of published tables and of our own figures, so that both stand in one column.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::sweep {

struct Unit {
  std::string name;
  std::string quantity;  ///< "time", "rate", "bandwidth", "number"
  double factor = 1;     ///< one of it in s, operations per s, bytes per s
};

/// A unit by its name ("us", "MB/s"); empty for one that is not known.
[[nodiscard]] std::optional<Unit> find_unit(std::string_view name);
[[nodiscard]] std::vector<std::string> unit_names();

/// The unit that a path into a Result says: "latency_ns.mean" is in ns.
[[nodiscard]] Unit unit_of_path(std::string_view path);

}  // namespace doorbell::sweep
