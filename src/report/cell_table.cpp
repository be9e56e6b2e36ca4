// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/cell_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "report/csv.hpp"
#include "report/layout.hpp"
#include "report/notable.hpp"
#include "report/paint.hpp"
#include "report/text_parts.hpp"
#include "report/verdict.hpp"

namespace doorbell::report {

namespace {

using Parameters = nlohmann::ordered_json;

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastName = 16;

struct TableRow {
  std::string name;
  std::vector<std::string>
      figures;  ///< size, rate, bandwidth, p50, p99, and, where packets may be lost, their share
  std::string checked = {};
  std::string verdict = {};
  Style style = Style::plain;
};

/// Text in lines of at most `width` characters, broken at spaces; a longer word is a line of its own.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string& line = lines.back();
    if (line.empty()) line = word;
    else if (report::columns(line) + 1 + report::columns(word) <= width) line += fmt::format(" {}", word);
    else lines.emplace_back(word);
  }
  return lines;
}

/// Parts on lines of the table's width, each line indented; the first one begins with `head`.
std::string filled(const std::string& head, const std::vector<std::string>& parts, std::string_view separator,
                   std::size_t columns) {
  std::string out, line = head;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string part = parts[i] + (i + 1 < parts.size() ? std::string(separator) : "");
    if (report::columns(line) > report::columns(head) &&
        report::columns(line) + report::columns(parts[i]) > columns) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(report::columns(head), ' ');
    }
    line += part;
  }
  return out + line + "\n";
}

/// The parameter that is an operation's size, by its unit: the first one in bytes.
std::optional<std::string> size_key(const Parameters& p) {
  for (const auto& [key, value] : p.items())
    if (key.ends_with("_bytes") && value.is_number()) return key;
  return std::nullopt;
}

std::string size_of(const Cell& c) {
  if (const auto key = size_key(c.cell)) return c.cell[*key].dump();
  if (c.metrics.ops == 0) return "-";
  return c.metrics.bytes % c.metrics.ops == 0 ? fmt::format("{}", c.metrics.bytes / c.metrics.ops) : "-";
}

std::string initiator_text(const Cell& c) {
  std::string text = "initiator " + printable(c.initiator_kind);
  if (c.gpu) text += fmt::format(" {}", *c.gpu);
  return text;
}

std::string way_of(const Cell& c) {
  if (!c.extra.is_object() || !c.extra.contains("beside") || !c.extra["beside"].is_object()) return "";
  const auto label = c.extra["beside"].find("label");
  return label != c.extra["beside"].end() && label->is_string() ? label->get<std::string>() : "";
}

std::string parameter(const std::string& key, const Parameters& value) {
  return printable(parameters_of(Parameters{{key, value}}));
}

/// A parameter in a row's name, where words speak for themselves.
std::string in_name(const std::string& key, const Parameters& value) {
  return value.is_string() ? printable(value.get<std::string>()) : parameter(key, value);
}

std::string title_of(const Cell& c) {
  const bool titled = c.cell.is_object() && c.cell.contains("title") && c.cell["title"].is_string();
  return titled ? c.cell["title"].get<std::string>() : "";
}

/// Cells whose parameters can be compared with each other.
std::string kin_of(const Cell& c) {
  return c.path + "\n" + title_of(c);
}

std::string checked_text(const Verify& v) {
  if (v.mode == "none" || v.checked == 0) return "nothing";
  if (v.unverifiable != 0) {
    const double of = static_cast<double>(v.checked) + static_cast<double>(v.unverifiable);
    return fmt::format("{:.1f} %", std::min(99.9, 100 * static_cast<double>(v.checked) / of));
  }
  return v.mode == "full" ? "all" : printable(v.mode);
}

bool has_errors(const Cell& c) {
  return std::ranges::any_of(c.errors, [](const auto& e) { return e.second != 0; });
}

bool noisy(const Cell& c) {
  const auto rate = c.spread.find("ops_per_s");
  return rate != c.spread.end() && rate->second.noisy && c.repeats.size() > 1;
}

std::string without_figures(std::string_view text) {
  std::string out;
  for (const char c : text)
    if ((c < '0' || c > '9') && c != '.') out += c;
    else if (out.empty() || out.back() != '#') out += '#';
  return out;
}

/// The forms of a warning without its figures: whole, and without the titles in front of it, one by one.
std::vector<std::string> forms_of(const std::string& warning) {
  const std::string text = without_figures(warning);
  std::vector<std::string> forms = {text};
  for (std::size_t at = text.find(": "); at != std::string::npos; at = text.find(": ", at + 2))
    forms.push_back(text.substr(at + 2));
  return forms;
}

/// Warnings that differ only in figures and in the cell that they name are one, with their number.
std::vector<std::string> alike_together(const std::vector<std::string>& warnings) {
  std::map<std::string, std::size_t> count;
  for (const std::string& w : warnings)
    for (const std::string& form : forms_of(w)) ++count[form];
  std::vector<std::string> out;
  std::set<std::string> said;
  for (const std::string& w : warnings) {
    const std::vector<std::string> forms = forms_of(w);
    const std::string& kind = *std::ranges::max_element(forms, {}, [&](const auto& f) { return count[f]; });
    if (!said.insert(kind).second) continue;
    const std::size_t others = count[kind] - 1;
    out.push_back(others == 0 ? w : fmt::format("{} (and {} more of this kind)", w, others));
  }
  return out;
}

class CellTable {
 public:
  CellTable(const Result& result, Look look)
      : result_(result),
        paint_(look.colour),
        columns_(look.columns),
        rate_(rate_unit(result.cells)),
        bandwidth_(bandwidth_unit(look.bits)),
        losses_(std::ranges::any_of(result.cells, [](const Cell& c) { return loss_of(c).has_value(); })) {
    find_differences();
  }

  [[nodiscard]] std::string text() {
    std::string out = common();
    std::vector<TableRow> rows = {head()};
    for (const Cell& c : result_.cells) {
      rows.push_back(row_of(c));
      if (result_.cells.size() == 1 && c.parts.size() > 1)
        for (const auto& [name, metrics] : c.parts) rows.push_back(part_of(name, metrics));
    }
    return out + laid_out(rows) + notes();
  }

 private:
  /// Parameters that follow from a varying word of each row's name ("latency": batch=1, "rate": batch=64)
  /// leave the names.
  void find_dependent(const std::string& kin) {
    std::set<std::string>& keys = varies_[kin];
    std::vector<const Cell*> cells;
    for (const Cell& c : result_.cells)
      if (kin_of(c) == kin && c.cell.is_object()) cells.push_back(&c);
    for (const auto& [word, value] : cells.front()->cell.items()) {
      if (!keys.contains(word) || !value.is_string()) continue;
      Dependents found{.word = word};
      for (const auto& [key, ignored] : cells.front()->cell.items()) {
        if (key == word || !keys.contains(key) || key == size_key(cells.front()->cell)) continue;
        if (follows(cells, word, key)) found.keys.push_back(key);
      }
      if (found.keys.empty()) continue;
      for (const std::string& key : found.keys) keys.erase(key);
      dependents_[kin] = std::move(found);
      return;
    }
  }

  static bool follows(const std::vector<const Cell*>& cells, const std::string& word,
                      const std::string& key) {
    std::map<std::string, Parameters> of_word;
    return std::ranges::all_of(cells, [&](const Cell* c) {
      if (!c->cell.contains(word) || !c->cell[word].is_string() || !c->cell.contains(key)) return false;
      return of_word.try_emplace(c->cell[word].dump(), c->cell[key]).first->second == c->cell[key];
    });
  }

  /// "  latency: batch=1  in_flight=1", a line for each word.
  [[nodiscard]] std::string dependents() const {
    std::string out;
    if (dependents_.size() != 1 || varies_.size() != 1) return out;
    const Dependents& d = dependents_.begin()->second;
    std::set<std::string> said;
    for (const Cell& c : result_.cells) {
      if (!c.cell.is_object() || !c.cell.contains(d.word)) continue;
      const std::string word = printable(c.cell[d.word].get<std::string>());
      if (!said.insert(word).second) continue;
      std::vector<std::string> parts;
      for (const std::string& key : d.keys) parts.push_back(parameter(key, c.cell[key]));
      out += filled(fmt::format("  {}:  ", word), parts, "  ", columns_);
    }
    return out;
  }

  void find_differences() {
    std::map<std::string, std::map<std::string, std::set<std::string>>> of_kin;
    std::map<std::string, std::pair<std::set<std::string>, std::size_t>> of_all;
    std::set<std::string> paths, devices, initiators;
    for (const Cell& c : result_.cells) {
      paths.insert(c.path);
      devices.insert(device_text(c));
      initiators.insert(initiator_text(c));
      if (!c.cell.is_object()) continue;
      for (const auto& [key, value] : c.cell.items()) {
        of_kin[kin_of(c)][key].insert(value.dump(-1, ' ', false, Parameters::error_handler_t::replace));
        auto& [values, count] = of_all[key];
        values.insert(value.dump(-1, ' ', false, Parameters::error_handler_t::replace));
        ++count;
      }
    }
    for (const auto& [kin, keys] : of_kin)
      for (const auto& [key, values] : keys)
        if (values.size() > 1) varies_[kin].insert(key);
    for (const auto& [key, all] : of_all)
      if (all.first.size() == 1 && all.second == result_.cells.size()) same_.insert(key);
    for (const auto& [kin, keys] : of_kin) find_dependent(kin);
    one_path_ = paths.size() == 1;
    one_device_ = devices.size() == 1;
    one_initiator_ = initiators.size() == 1;
  }

  /// The facts that all cells have in common.
  [[nodiscard]] std::string common() const {
    if (result_.cells.empty()) return "";
    const Cell& first = result_.cells.front();
    std::vector<std::string> parts;
    if (one_path_) parts.push_back(printable(first.path));
    if (one_device_) parts.push_back(device_text(first));
    if (one_initiator_) parts.push_back(initiator_text(first));
    std::string out;
    if (!parts.empty())
      for (const std::string& line : wrapped(fmt::format("{}", fmt::join(parts, ", ")), columns_))
        out += paint_(Style::bold, line) + "\n";
    parts.clear();
    const std::optional<std::string> size = size_key(first.cell);
    if (first.cell.is_object())
      for (const auto& [key, value] : first.cell.items())
        if (same_.contains(key) && key != size && key != "title") parts.push_back(parameter(key, value));
    if (!parts.empty()) out += filled(std::string(kIndent, ' '), parts, "  ", columns_);
    return out + dependents();
  }

  [[nodiscard]] TableRow head() const {
    std::vector<std::string> figures = {"size B", rate_.name, bandwidth_.name, "p50 us", "p99 us"};
    if (losses_) figures.emplace_back("loss %");
    return {.name = "what",
            .figures = std::move(figures),
            .checked = "checked",
            .verdict = "verdict",
            .style = Style::bold};
  }

  [[nodiscard]] std::string name_of(const Cell& c) const {
    std::vector<std::string> parts = {printable(c.path)};
    if (const std::string title = title_of(c); !title.empty()) parts.push_back(printable(title));
    else if (!one_device_) parts.push_back(printable(c.device_name));
    if (!one_initiator_) parts.push_back(c.initiator_kind + (c.gpu ? fmt::format("{}", *c.gpu) : ""));
    const std::string way = way_of(c);
    if (!way.empty()) parts.push_back(printable(way));
    const auto varying = varies_.find(kin_of(c));
    const std::optional<std::string> size = size_key(c.cell);
    if (varying != varies_.end())
      for (const auto& [key, value] : c.cell.items())
        if (key != size && varying->second.contains(key)) parts.push_back(in_name(key, value));
    return fmt::format("{}", fmt::join(parts, " "));
  }

  /// The share of a cell's packets that did not arrive, in percent, where its path counts that.
  static std::optional<double> loss_of(const Cell& c) {
    if (!c.extra.is_object() || !c.extra.contains(c.path)) return std::nullopt;
    const Parameters& own = c.extra[c.path];
    const auto lost = own.is_object() ? own.find("lost_percent") : own.end();
    if (!own.is_object() || lost == own.end() || !lost->is_number()) return std::nullopt;
    return lost->get<double>();
  }

  [[nodiscard]] std::vector<std::string> figures_of(const std::string& size, const Metrics& m,
                                                    const std::optional<double>& lost = {}) const {
    std::vector<std::string> figures = {size, digits(m.ops_per_s / rate_.unit),
                                        digits(m.bytes_per_s / bandwidth_.unit),
                                        digits(m.latency_ns.p50, 1e3), digits(m.latency_ns.p99, 1e3)};
    if (losses_) figures.push_back(lost && *lost == 0 ? "0" : digits(lost));
    return figures;
  }

  TableRow row_of(const Cell& c) {
    TableRow r{.name = name_of(c),
               .figures = figures_of(size_of(c), c.metrics, loss_of(c)),
               .checked = checked_text(c.verify)};
    const bool failed = c.verify.failed() != 0 || has_errors(c);
    if (failed) {
      r.verdict = "FAILED";
      r.style = Style::bad;
    } else if (c.verify.checked == 0) {
      r.verdict = "unverified";
      r.style = Style::warn;
    } else {
      r.verdict = "OK";
      r.style = Style::good;
    }
    if (noisy(c)) {
      r.verdict += ", noisy";
      if (r.style == Style::good) r.style = Style::warn;
      noise_ = true;
    }
    if (std::string why = reasons(c, failed); !why.empty()) r.verdict += fmt::format(" [{}]", note(why));
    return r;
  }

  [[nodiscard]] TableRow part_of(const std::string& name, const Metrics& m) const {
    return {.name = "  " + printable(name), .figures = figures_of("", m)};
  }

  /// Why a row is not simply good: a line for each kind of reason.
  [[nodiscard]] std::string reasons(const Cell& c, bool failed) const {
    const Paint plain(false);
    std::string out;
    const bool read_nothing = c.verify.checked == 0 && c.verify.mode != "none" && c.metrics.ops != 0;
    if (c.verify.failed() != 0 || read_nothing) out += verify_lines(c.verify, plain);
    else if (c.verify.unverifiable != 0 && c.verify.checked != 0)
      out += labelled("verify", fmt::format("{} of data not known to be written", c.verify.unverifiable));
    if (has_errors(c)) out += errors_line(c.errors, plain);
    if (const auto counters = notable_counters(c.extra); !counters.empty())
      out += filled("  counters  ", counters, ", ", columns_);
    if (const std::string beyond = beyond_range_text(c.metrics.latency_ns); !beyond.empty())
      out += labelled("latency", beyond);
    if (failed && c.verify.checked == 0 && !read_nothing) out += labelled("verify", "NOT verified");
    // The answer of a search, in a sentence.
    if (c.extra.is_object())
      for (const auto& [key, object] : c.extra.items())
        if (object.is_object() && object.contains("answer") && object["answer"].is_string())
          out += labelled("answer", printable(object["answer"].get<std::string>()));
    return out;
  }

  /// The number of a note; equal notes are one.
  std::size_t note(const std::string& text) {
    const auto found = std::ranges::find(notes_, text);
    if (found != notes_.end()) return static_cast<std::size_t>(found - notes_.begin()) + 1;
    notes_.push_back(text);
    return notes_.size();
  }

  [[nodiscard]] std::string notes() const {
    std::string out;
    // A note's lines are indented; its number takes that place in the first one.
    for (std::size_t i = 0; i < notes_.size(); ++i)
      out += fmt::format("[{}] {}", i + 1, notes_[i].substr(kIndent));
    if (noise_)
      out += "noisy: the rates of the repeats differ by more than 5 %; --details has their interval\n";
    return out;
  }

  [[nodiscard]] std::string laid_out(const std::vector<TableRow>& rows) const {
    std::vector<std::size_t> widths(rows.front().figures.size());
    std::size_t name = 0, checked = 0, verdict = 0;
    for (const TableRow& r : rows) {
      for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], r.figures[i].size());
      name = std::max(name, report::columns(r.name));
      checked = std::max(checked, report::columns(r.checked));
      verdict = std::max(verdict, r.verdict.size());
    }
    std::size_t others = kIndent + kGap + checked + kGap + verdict;
    for (const std::size_t w : widths) others += kGap + w;
    const std::size_t room = columns_ > others + kLeastName ? columns_ - others : kLeastName;
    name = std::min(name, room);
    std::string out;
    for (const TableRow& r : rows) {
      // The lines of a part's name keep their indent.
      std::vector<std::string> lines = {r.name};
      if (report::columns(r.name) > name) lines = wrapped(r.name, name);
      std::string line = std::string(kIndent, ' ') + padded(lines[0], name);
      for (std::size_t i = 0; i < widths.size(); ++i)
        line += fmt::format("  {:>{}}", r.figures[i], widths[i]);
      line += "  " + padded(r.checked, checked);
      if (r.style == Style::bold) line = paint_(Style::bold, line + "  " + r.verdict);
      else if (!r.verdict.empty()) line += "  " + paint_(r.style, r.verdict);
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      for (std::size_t i = 1; i < lines.size(); ++i) out += std::string(2 * kIndent, ' ') + lines[i] + "\n";
    }
    return out;
  }

  static std::string padded(const std::string& text, std::size_t width) {
    const std::size_t n = report::columns(text);
    return n < width ? text + std::string(width - n, ' ') : text;
  }

  const Result& result_;
  Paint paint_;
  std::size_t columns_;
  ColumnUnit rate_, bandwidth_;
  bool losses_;
  std::map<std::string, std::set<std::string>> varies_;  ///< by kin: keys with more than one value
  /// Parameters that follow from another one, whose values are words.
  struct Dependents {
    std::string word;
    std::vector<std::string> keys = {};
  };
  std::map<std::string, Dependents> dependents_;  ///< by kin
  std::set<std::string> same_;                    ///< keys that every cell has with the same value
  bool one_path_ = true, one_device_ = true, one_initiator_ = true;
  std::vector<std::string> notes_;
  bool noise_ = false;
};

}  // namespace

std::string cell_table(const Result& result, Look look) {
  return result.cells.empty() ? "" : CellTable(result, look).text();
}

std::string closing_lines(const Result& result, Look look) {
  const Paint paint(look.colour);
  std::string out;
  for (const std::string& warning : alike_together(result.warnings))
    out += paint(Style::warn, "warning: " + printable(warning)) + "\n";
  u64 checked = 0, bytes = 0;
  for (const Cell& c : result.cells) {
    checked += c.verify.checked;
    bytes += c.verify.checked_bytes;
  }
  if (checked != 0) out += fmt::format("verified {} operations ({})\n", checked, bytes_text(bytes));
  const Verdict verdict = verdict_for(result);
  return out + paint(style_of(verdict), verdict.text) + "\n";
}

std::string to_short_text(const Result& result, Look look) {
  std::string out = cell_table(result, look);
  if (!out.empty()) out += "\n";
  return out + comparison_table(result, look, true) + closing_lines(result, look);
}

}  // namespace doorbell::report
