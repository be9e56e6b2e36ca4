// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A Result for the tests of what reads them.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

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

}  // namespace doorbell::sweep
