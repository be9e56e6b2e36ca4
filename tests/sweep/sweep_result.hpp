// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result for the tests of what reads them.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "sweep/samples.hpp"

namespace doorbell::sweep {

/// A Result with one cell of these repeats.
inline nlohmann::ordered_json result_of(const std::vector<double>& repeats, const char* device = "model") {
  auto list = nlohmann::ordered_json::array();
  for (const double ops : repeats) list.push_back({{"ops_per_s", ops}, {"p99_ns", nullptr}});
  return {{"schema", "doorbell.results/1"},
          {"complete", true},
          {"exit_code", 0},
          {"warnings", nlohmann::ordered_json::array()},
          {"cells",
           {{{"path", "nvme"},
             {"cell", {{"batch", 1}}},
             {"options", {{"verify", "on"}, {"json", "x"}}},
             {"device", {{"kind", device}, {"name", device}}},
             {"verify", {{"mode", "full"}, {"checked", 50}, {"checked_bytes", 5000}, {"unverifiable", 7}}},
             {"errors", {{"timeout", 0}}},
             {"repeats", list}}}}};
}

inline nlohmann::ordered_json& cell_of(nlohmann::ordered_json& result) {
  return result["cells"][0];
}

inline Measured one_run(const std::vector<double>& repeats,
                        const std::function<void(nlohmann::ordered_json&)>& change = {}) {
  Measured m;
  m.name = "m";
  nlohmann::ordered_json result = result_of(repeats);
  if (change) change(result);
  add_result(result, "r", &m);
  return m;
}

}  // namespace doorbell::sweep
