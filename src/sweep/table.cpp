// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/table.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>

#include "measure/statistics.hpp"
#include "report/layout.hpp"
#include "report/units.hpp"
#include "sweep/units.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;
using report::digits;
using report::printable;

const Json* inside(const Json& from, std::string_view path) {
  const Json* at = &from;
  while (!path.empty()) {
    const std::string part(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(part.size() + 1, path.size()));
    if (!at->is_object()) return nullptr;
    const auto found = at->find(part);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

/// The runs of one cell.
using Runs = std::vector<const Record*>;

std::vector<const Json*> result_cells(const Record& record) {
  std::vector<const Json*> cells;
  const Json* list = record.result.is_object() ? inside(record.result, "cells") : nullptr;
  if (list != nullptr && list->is_array())
    for (const Json& cell : *list) cells.push_back(&cell);
  return cells;
}

/// The median of a figure over a cell's runs; `way` is the index of the cell in each run's Result.
std::optional<double> median_of(const Runs& runs, std::size_t way, std::string_view path) {
  std::vector<double> samples;
  for (const Record* r : runs) {
    const auto cells = result_cells(*r);
    if (way >= cells.size()) continue;
    if (const auto v = figure_at(*cells[way], path)) samples.push_back(*v);
  }
  if (samples.empty()) return std::nullopt;
  return measure::median(samples);
}

std::size_t ways(const Runs& runs) {
  std::size_t most = 1;
  for (const Record* r : runs) most = std::max(most, result_cells(*r).size());
  return most;
}

std::string way_name(const Runs& runs, std::size_t way) {
  for (const Record* r : runs) {
    const auto cells = result_cells(*r);
    if (way >= cells.size()) continue;
    const Json* label = inside(*cells[way], "beside.label");
    if (label != nullptr && label->is_string()) return printable(label->get<std::string>());
  }
  return fmt::format("{}", way + 1);
}

std::string verdicts(const Runs& runs) {
  if (runs.empty()) return "not run";
  std::vector<std::string> kinds;
  for (const Record* r : runs) {
    const std::string v = verdict_of(*r);
    if (std::ranges::find(kinds, v) == kinds.end()) kinds.push_back(v);
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

std::string devices(const std::vector<Record>& records) {
  std::set<std::string> found;
  for (const Record& r : records)
    for (const Json* cell : result_cells(r)) {
      const Json* kind = inside(*cell, "device.kind");
      const Json* by = inside(*cell, "initiator.kind");
      if (kind == nullptr || by == nullptr || !kind->is_string() || !by->is_string()) continue;
      const auto name = kind->get<std::string>();
      found.insert(fmt::format("{}, initiator {}", name == "model" ? "software model" : printable(name),
                               printable(by->get<std::string>())));
    }
  return fmt::format("{}", fmt::join(found, "; "));
}

/// The unit of all cells' rates.
report::ColumnUnit rate_of(const std::vector<Record>& records) {
  bool packets = false, others = false;
  for (const Record& r : records)
    for (const Json* cell : result_cells(r)) {
      const Json* const operation = inside(*cell, "operation");
      const bool packet = operation != nullptr && *operation == report::kPacket;
      packets = packets || packet;
      others = others || !packet;
    }
  return report::rate_unit(packets, others);
}

/// Printable text whose lines after the first are indented.
std::string lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += (at == 0 ? "" : "\n    ") + printable(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

class Summary {
 public:
  Summary(const Plan& plan, const std::vector<Cell>& cells, const std::vector<u32>& selected,
          const std::vector<Record>& records, bool bits)
      : plan_(plan),
        cells_(cells),
        selected_(selected),
        records_(records),
        bits_(bits),
        names_(varied(plan)) {
    for (const Record& r : records)
      if (std::ranges::find(selected, r.cell) != selected.end()) runs_[r.cell].push_back(&r);
  }

  [[nodiscard]] std::string head() const {
    std::string text = fmt::format("{}  doorbell {}", plan_.name, plan_.subject->name);
    if (!plan_.title.empty()) text = fmt::format("{}: {}", text, printable(plan_.title));
    const std::string measured = devices(records_);
    return text + "\n" + (measured.empty() ? "" : fmt::format("  measured on: {}\n", measured));
  }

  [[nodiscard]] std::string ours() const {
    std::vector<std::vector<std::string>> rows = {cell_header()};
    bool several_ways = false;
    for (const u32 index : selected_) several_ways = several_ways || ways(runs(index)) > 1;
    if (several_ways) rows[0].emplace_back("way");
    const report::ColumnUnit rate = rate_of(records_), bandwidth = report::bandwidth_unit(bits_);
    for (const std::string& name : {std::string("runs"), rate.name, bandwidth.name, std::string("mean us"),
                                    std::string("p50 us"), std::string("p99 us"), std::string("ended")})
      rows[0].push_back(name);
    for (const u32 index : selected_) {
      const Runs& of = runs(index);
      for (std::size_t way = 0; way < ways(of); ++way) {
        std::vector<std::string> row = cell_columns(index);
        if (several_ways) row.push_back(way_name(of, way));
        row.push_back(fmt::format("{}", of.size()));
        row.push_back(digits(median_of(of, way, "ops_per_s"), rate.unit));
        row.push_back(digits(median_of(of, way, "bytes_per_s"), bandwidth.unit));
        for (const char* name : {"latency_ns.mean", "latency_ns.p50", "latency_ns.p99"})
          row.push_back(digits(median_of(of, way, name), 1e3));
        row.push_back(verdicts(of));
        rows.push_back(std::move(row));
      }
    }
    return report::table(rows) + (plan_.rounds > 1 ? "  figures are medians over a cell's runs\n" : "");
  }

  [[nodiscard]] std::string with_published(const ReferenceTable& table) const {
    const Reference& r = table.reference;
    std::string text = fmt::format("published, other machine: {}", printable(r.file));
    for (const auto& [column, values] : r.where)
      text +=
          fmt::format(", {} {}", printable(column), printable(fmt::format("{}", fmt::join(values, " or "))));
    if (!r.note.empty()) text += fmt::format(" ({})", printable(r.note));
    std::vector<std::vector<std::string>> rows = {cell_header()};
    rows[0].push_back(fmt::format("ours {} {}", r.ours, r.unit));
    for (const auto& [name, column] : r.columns)
      rows[0].push_back(fmt::format("published {} {}", name, r.unit));
    // Both units are of the same quantity: the plan's checks made sure of that.
    const double ratio = find_unit(r.unit)->factor / unit_of_path(r.ours).factor;
    for (const u32 index : selected_) {
      const std::optional<Published>& theirs = table.rows[index];
      if (!theirs) continue;
      std::vector<std::string> row = cell_columns(index);
      row.push_back(digits(median_of(runs(index), 0, r.ours), ratio));
      for (const auto& [name, column] : r.columns) {
        const bool there = theirs->figures.contains(name);
        // As published, with the published rounding.
        row.push_back(there ? fmt::format("{}", theirs->figures.at(name)) : "-");
      }
      rows.push_back(std::move(row));
    }
    return text + "\n" + report::table(rows);
  }

  [[nodiscard]] std::string failures() const {
    std::string text;
    for (const auto& [index, of] : runs_)
      for (const Record* r : of)
        if (!r->error.empty())
          text += fmt::format("cell {} round {}: {}\n", shown_number(index), r->round, lines(r->error));
    return text;
  }

 private:
  [[nodiscard]] std::vector<std::string> cell_header() const {
    std::vector<std::string> row = {"cell"};
    row.insert(row.end(), names_.begin(), names_.end());
    return row;
  }

  [[nodiscard]] std::vector<std::string> cell_columns(u32 index) const {
    std::vector<std::string> row = {fmt::format("{}", shown_number(index))};
    for (const std::string& name : names_) {
      const std::string value = value_of(cells_[index], name);
      row.push_back(value.empty() ? "-" : printable(value));
    }
    return row;
  }

  [[nodiscard]] const Runs& runs(u32 index) const {
    static const Runs none;
    const auto found = runs_.find(index);
    return found == runs_.end() ? none : found->second;
  }

  const Plan& plan_;
  const std::vector<Cell>& cells_;
  const std::vector<u32>& selected_;
  const std::vector<Record>& records_;
  bool bits_;
  std::vector<std::string> names_;
  std::map<u32, Runs> runs_;
};

}  // namespace

std::optional<double> figure_at(const Json& result_cell, std::string_view path) {
  if (!result_cell.is_object()) return std::nullopt;
  for (const char* base : {"metrics", ""}) {
    const Json* from = inside(result_cell, base);
    const Json* found = from == nullptr ? nullptr : inside(*from, path);
    if (found != nullptr && found->is_number()) return found->get<double>();
  }
  return std::nullopt;
}

std::string verdict_of(const Record& r) {
  if (r.ended == "timeout" || r.ended == "interrupted") return r.ended;
  if (r.ended == "signal") return fmt::format("signal {}", r.exit_code - 128);
  if (r.exit_code == 77) return "skipped";  // what it needs is not on this machine
  if (r.exit_code != 0) return fmt::format("exit {}", r.exit_code);
  if (r.result.is_null()) return "no result";
  const Json* complete = inside(r.result, "complete");
  return complete != nullptr && *complete == true ? "ok" : "partial";
}

std::string summary(const Plan& plan, const std::vector<Cell>& cells, const std::vector<u32>& selected,
                    const std::vector<Record>& records, const std::vector<ReferenceTable>& references,
                    bool bits) {
  const Summary s(plan, cells, selected, records, bits);
  std::string text = s.head() + s.ours();
  for (const ReferenceTable& table : references) text += "\n" + s.with_published(table);
  const std::string failures = s.failures();
  return failures.empty() ? text : text + "\n" + failures;
}

}  // namespace doorbell::sweep
