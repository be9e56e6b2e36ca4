// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/fault_table.hpp"

#include <fmt/format.h>

#include "report/layout.hpp"

namespace doorbell::cli {

std::vector<report::FaultFinding> findings(const std::vector<FaultRow>& rows) {
  std::vector<report::FaultFinding> out;
  for (const FaultRow& row : rows)
    for (u32 kind = 0; kind < row.checks.size(); ++kind)
      if (const std::optional<FaultCheck>& c = row.checks[kind])
        out.push_back({.path = row.path,
                       .fault = std::string(model::name(static_cast<model::Fault>(kind))),
                       .injected = c->injected,
                       .found = c->found,
                       .found_as = c->found_as});
  return out;
}

std::string fault_table(const std::vector<FaultRow>& rows) {
  std::vector<std::vector<std::string>> cells(1);
  cells[0].emplace_back("found/injected");
  for (const std::string& fault : model::fault_names()) cells[0].push_back(fault);
  std::string mismatches;
  for (const FaultRow& row : rows) {
    std::vector<std::string>& line = cells.emplace_back();
    line.push_back(row.title);
    for (u32 kind = 0; kind < model::kFaultKinds; ++kind) {
      const std::optional<FaultCheck> c = kind < row.checks.size() ? row.checks[kind] : std::nullopt;
      if (!c) {
        line.emplace_back("");
        continue;
      }
      const bool none = c->injected == 0 && c->found == 0;
      line.push_back(none ? "-" : fmt::format("{}/{}{}", c->found, c->injected, matches(*c) ? "" : " !"));
      if (!matches(*c))
        mismatches += fmt::format("MISMATCH: fault {} of the {} model: {} injected, {} found as {}\n",
                                  model::name(static_cast<model::Fault>(kind)), row.title, c->injected,
                                  c->found, c->found_as);
    }
  }
  return report::table(cells) + mismatches;
}

std::string fault_lines(const std::vector<FaultRow>& rows) {
  std::string out;
  for (const FaultRow& row : rows) {
    out +=
        fmt::format("Faults that the {} model injects, and what the initiator makes of them:\n", row.title);
    for (u32 kind = 0; kind < row.checks.size(); ++kind)
      if (const std::optional<FaultCheck>& c = row.checks[kind])
        out += fmt::format("  {:<10} injected {:>3}   found {:>3} as {}{}\n",
                           model::name(static_cast<model::Fault>(kind)), c->injected, c->found, c->found_as,
                           matches(*c) ? "" : "   MISMATCH");
  }
  return out;
}

}  // namespace doorbell::cli
