// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/reference.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "options/suggest.hpp"
#include "sweep/text_file.hpp"

namespace doorbell::sweep {

namespace {

using options::Option;

class Matcher {
 public:
  Matcher(const Plan& plan, const Reference& reference, const CsvFile& file)
      : plan_(plan), reference_(reference), file_(file) {}

  ReferenceTable run(const std::vector<Cell>& cells) {
    prepare();
    ReferenceTable table{.reference = reference_, .rows = {}};
    std::size_t found = 0;
    for (const Cell& cell : cells) {
      table.rows.push_back(row_for(cell));
      if (table.rows.back()) ++found;
    }
    if (found == 0)
      refuse(fmt::format("no row of {} fits any cell", file_.name),
             "look at 'where' and 'match', and at the values of the columns that they name");
    return table;
  }

 private:
  [[noreturn]] void refuse(const std::string& why, std::string hint = {}) const {
    throw Error(fmt::format("{}:{}: reference", plan_.file, reference_.line), why, std::move(hint));
  }

  [[nodiscard]] std::size_t column(const std::string& name) const {
    if (const auto at = file_.column(name)) return *at;
    const std::string near = options::nearest(name, file_.header);
    refuse(fmt::format("{} has no column '{}'{}", file_.name, name,
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
           fmt::format("its columns are {}", fmt::join(file_.header, ", ")));
  }

  void prepare() {
    for (const CsvRow& row : file_.rows) rows_.push_back(&row);
    for (const auto& [name, values] : reference_.where) {
      const std::size_t at = column(name);
      std::erase_if(rows_, [&](const CsvRow* row) {
        return std::ranges::find(values, row->fields[at]) == values.end();
      });
    }
    for (const Match& m : reference_.match) (void)column(m.column);
    for (const auto& [ours, theirs] : reference_.columns) (void)column(theirs);
  }

  /// True if the published text `theirs` means the same as the cell's value.
  [[nodiscard]] bool same(const Cell& cell, const Match& m, const std::string& theirs) const {
    const Option& o = *plan_.subject->table.find(m.option);
    const std::string ours = value_of(cell, m.option);
    if (ours.empty()) return theirs.empty();
    for (const auto& [mine, published] : m.values)
      if (same_value(o, mine, ours)) return published == theirs;
    if (!m.values.empty()) return false;
    return same_value(o, theirs, ours);
  }

  [[nodiscard]] std::optional<Published> row_for(const Cell& cell) const {
    const CsvRow* found = nullptr;
    for (const CsvRow* row : rows_) {
      const bool fits = std::ranges::all_of(reference_.match, [&](const Match& m) {
        return same(cell, m, row->fields[*file_.column(m.column)]);
      });
      if (!fits) continue;
      if (found != nullptr)
        refuse(fmt::format("{}:{} and :{} both fit cell {}", file_.name, found->line, row->line,
                           shown_number(cell.index)),
               "narrow it with 'where'");
      found = row;
    }
    if (found == nullptr) return std::nullopt;
    return published(*found);
  }

  [[nodiscard]] Published published(const CsvRow& row) const {
    if (const auto unit = file_.column("unit"); unit && row.fields[*unit] != reference_.unit)
      refuse(fmt::format("{}:{} is in '{}', not in {}", file_.name, row.line, row.fields[*unit],
                         reference_.unit));
    Published p{.line = row.line, .figures = {}};
    for (const auto& [name, theirs] : reference_.columns) {
      const std::string& text = row.fields[*file_.column(theirs)];
      if (text.empty()) continue;
      double value = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
      if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || !std::isfinite(value))
        refuse(fmt::format("{}:{}: '{}' in column {} is not a number", file_.name, row.line, text, theirs));
      p.figures[name] = value;
    }
    return p;
  }

  const Plan& plan_;
  const Reference& reference_;
  const CsvFile& file_;
  std::vector<const CsvRow*> rows_;
};

}  // namespace

ReferenceTable match_reference(const Plan& plan, const Reference& reference, const CsvFile& file,
                               const std::vector<Cell>& cells) {
  return Matcher(plan, reference, file).run(cells);
}

std::vector<ReferenceTable> load_references(const Plan& plan, const std::vector<Cell>& cells) {
  std::vector<ReferenceTable> tables;
  for (const Reference& r : plan.references) {
    const std::string path = file_of(plan, r);
    const CsvFile file = parse_csv(read_text(path), path);
    tables.push_back(match_reference(plan, r, file, cells));
  }
  return tables;
}

}  // namespace doorbell::sweep
