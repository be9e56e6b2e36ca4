// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/units.hpp"

#include <array>

namespace doorbell::sweep {

namespace {

const std::array<Unit, 19>& units() {
  static const std::array<Unit, 19> all = {{{"ns", "time", 1e-9},
                                            {"us", "time", 1e-6},
                                            {"ms", "time", 1e-3},
                                            {"s", "time", 1},
                                            {"ops/s", "rate", 1},
                                            {"kIOPS", "rate", 1e3},
                                            {"MIOPS", "rate", 1e6},
                                            {"Mpps", "rate", 1e6},
                                            {"B/s", "bandwidth", 1},
                                            {"kB/s", "bandwidth", 1e3},
                                            {"MB/s", "bandwidth", 1e6},
                                            {"GB/s", "bandwidth", 1e9},
                                            {"KiB/s", "bandwidth", 1024},
                                            {"MiB/s", "bandwidth", 1024.0 * 1024},
                                            {"GiB/s", "bandwidth", 1024.0 * 1024 * 1024},
                                            {"Mb/s", "bandwidth", 1e6 / 8},
                                            {"Gb/s", "bandwidth", 1e9 / 8},
                                            {"percent", "share", 0.01},
                                            {"number", "number", 1}}};
  return all;
}

// True for "latency_ns", or for "p50_ns" as the last part.
bool says(std::string_view part, std::string_view unit) {
  return part == unit ||
         (part.size() > unit.size() && part.ends_with(unit) && part[part.size() - unit.size() - 1] == '_');
}

}  // namespace

std::optional<Unit> find_unit(std::string_view name) {
  for (const Unit& u : units())
    if (u.name == name) return u;
  return std::nullopt;
}

std::vector<std::string> unit_names() {
  std::vector<std::string> names;
  for (const Unit& u : units()) names.push_back(u.name);
  return names;
}

Unit unit_of_path(std::string_view path) {
  // The last part that names a unit decides. Longer spellings come first, because all end in "_s".
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kSpelled = {
      {{"bytes_per_s", "B/s"},
       {"gbps", "Gb/s"},
       {"mpps", "Mpps"},
       {"percent", "percent"},
       {"ops_per_s", "ops/s"},
       {"ns", "ns"},
       {"ns_per_op", "ns"},
       {"s", "s"},
       {"us", "us"}}};
  for (std::string_view rest = path; !rest.empty();) {
    const std::size_t dot = rest.rfind('.');
    const std::string_view part = dot == std::string_view::npos ? rest : rest.substr(dot + 1);
    for (const auto& [spelled, name] : kSpelled)
      if (says(part, spelled)) return *find_unit(name);
    rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(0, dot);
  }
  return *find_unit("number");
}

}  // namespace doorbell::sweep
