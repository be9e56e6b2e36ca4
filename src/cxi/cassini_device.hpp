// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Cassini NIC with its counters, as doorbell's own benches open it. Each back end (model, libcxi)
// implements it; all code above is the same for all.
#pragma once

#include <doorbell/cxi/cassini.hpp>

#include <nlohmann/json.hpp>

namespace doorbell::cxi {

class CassiniDevice : public Cassini {
 public:
  /// The device's own counters, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

}  // namespace doorbell::cxi
