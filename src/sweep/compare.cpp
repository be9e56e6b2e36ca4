// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/compare.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "measure/statistics.hpp"
#include "report/layout.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;
using report::digits;
using report::printable;

constexpr double kLevel = 0.95;

Change change_of(const Ratio& r, double threshold) {
  if (r.ci_level < kLevel) return Change::undecided;
  if (r.ci_low <= 1 && r.ci_high >= 1) return Change::same;
  const bool up = r.median > 1;
  if (up == more_is_better(r.metric)) return Change::better;
  // Symmetric in both directions: a rate that falls to 1/1.05 is as far off as a time that grows to 1.05.
  const double loss = up ? r.median : 1 / r.median;
  return loss > 1 + threshold ? Change::regression : Change::worse;
}

void warn_of(const Measured& m, std::vector<std::string>* warnings) {
  std::size_t failed = 0;
  for (const auto& [key, samples] : m.cells)
    if (samples.errors > 0) ++failed;
  if (failed > 0)
    warnings->push_back(fmt::format("{}: {} cells have data or completion errors", m.name, failed));
  if (m.without_result > 0)
    warnings->push_back(fmt::format("{}: {} runs left no result", m.name, m.without_result));
}

std::string figure(const std::string& metric, double v) {
  if (metric == "ops_per_s") return digits(v / 1e3) + " kIOPS";
  if (metric == "bytes_per_s") return digits(v / 1e6) + " MB/s";
  return digits(v / 1e3) + " us";
}

}  // namespace

const char* name(Change change) {
  switch (change) {
    case Change::undecided:
      return "undecided";
    case Change::same:
      return "same";
    case Change::better:
      return "better";
    case Change::worse:
      return "worse, within the threshold";
    case Change::regression:
      return "REGRESSION";
  }
  return "";
}

bool Comparison::regressed() const {
  return std::ranges::any_of(cells, [](const Compared& c) {
    return std::ranges::any_of(c.ratios, [](const Ratio& r) { return r.change == Change::regression; });
  });
}

Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
               const std::vector<std::optional<double>>& after, double threshold) {
  std::vector<double> ratios, first, second;
  for (std::size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    if (!before[i] || !after[i] || *before[i] <= 0 || *after[i] <= 0) continue;
    ratios.push_back(*after[i] / *before[i]);
    first.push_back(*before[i]);
    second.push_back(*after[i]);
  }
  Ratio r;
  r.metric = metric;
  r.pairs = ratios.size();
  if (ratios.empty()) return r;
  const report::Spread spread = measure::spread_of(ratios);
  r.before = measure::median(first);
  r.after = measure::median(second);
  r.median = spread.median;
  r.ci_low = spread.ci_low;
  r.ci_high = spread.ci_high;
  r.ci_level = spread.ci_level;
  r.change = change_of(r, threshold);
  return r;
}

Comparison compare(const Measured& before, const Measured& after, const std::vector<std::string>& metrics,
                   double threshold) {
  Comparison c;
  for (const std::string& key : before.order) {
    const auto other = after.cells.find(key);
    if (other == after.cells.end()) {
      c.only_before.push_back(key);
      continue;
    }
    const Samples& a = before.cells.at(key);
    const Samples& b = other->second;
    Compared cell{.label = key, .ratios = {}, .unpaired = 0};
    for (const std::string& metric : metrics) {
      const auto of = [&](const Samples& s) {
        const auto found = s.metrics.find(metric);
        return found == s.metrics.end() ? std::vector<std::optional<double>>{} : found->second;
      };
      const auto x = of(a), y = of(b);
      cell.unpaired = std::max(x.size(), y.size()) - std::min(x.size(), y.size());
      cell.ratios.push_back(ratio_of(metric, x, y, threshold));
    }
    if (a.measured_on != b.measured_on)
      c.warnings.push_back(fmt::format("{}: measured on {} and on {}", key, a.measured_on, b.measured_on));
    c.cells.push_back(std::move(cell));
  }
  for (const std::string& key : after.order)
    if (!before.cells.contains(key)) c.only_after.push_back(key);
  if (c.cells.empty())
    throw Error(fmt::format("{} and {}", before.name, after.name), "they have no cell in common",
                fmt::format("the first one's is '{}', the other's '{}'", before.order[0], after.order[0]));
  warn_of(before, &c.warnings);
  warn_of(after, &c.warnings);
  return c;
}

std::string to_text(const Comparison& c, const std::string& before, const std::string& after) {
  std::vector<std::vector<std::string>> rows = {
      {"metric", "pairs", "A", "B", "B/A", "interval", "level %", "verdict"}};
  std::string out = fmt::format("A: {}\nB: {}\n", printable(before), printable(after));
  for (const Compared& cell : c.cells) {
    out += printable(cell.label) + "\n";
    std::vector<std::vector<std::string>> table = rows;
    for (const Ratio& r : cell.ratios) {
      if (r.pairs == 0) {
        table.push_back({r.metric, "0", "-", "-", "-", "-", "-", name(r.change)});
        continue;
      }
      table.push_back({r.metric, fmt::format("{}", r.pairs), figure(r.metric, r.before),
                       figure(r.metric, r.after), fmt::format("{:.3f}", r.median),
                       fmt::format("{:.3f} to {:.3f}", r.ci_low, r.ci_high),
                       fmt::format("{:.1f}", r.ci_level * 100), name(r.change)});
    }
    out += report::table(table);
    if (cell.unpaired > 0) out += fmt::format("  {} repeats have no partner\n", cell.unpaired);
  }
  for (const std::string& key : c.only_before) out += fmt::format("only in A: {}\n", printable(key));
  for (const std::string& key : c.only_after) out += fmt::format("only in B: {}\n", printable(key));
  for (const std::string& warning : c.warnings) out += fmt::format("warning: {}\n", printable(warning));
  return out;
}

Json to_json(const Comparison& c) {
  Json out{{"schema", "doorbell.compare/1"}, {"regression", c.regressed()}, {"cells", Json::array()},
           {"only_before", c.only_before},   {"only_after", c.only_after},  {"warnings", c.warnings}};
  for (const Compared& cell : c.cells) {
    Json ratios = Json::array();
    for (const Ratio& r : cell.ratios) {
      const auto known = [&](double v) { return r.pairs == 0 ? Json(nullptr) : Json(v); };
      ratios.push_back({{"metric", r.metric},
                        {"pairs", r.pairs},
                        {"before", known(r.before)},
                        {"after", known(r.after)},
                        {"ratio", known(r.median)},
                        {"ci_low", known(r.ci_low)},
                        {"ci_high", known(r.ci_high)},
                        {"ci_level", r.ci_level},
                        {"verdict", r.change == Change::regression ? "regression"
                                    : r.change == Change::worse    ? "worse"
                                                                   : name(r.change)}});
    }
    out["cells"].push_back(
        {{"cell", cell.label}, {"unpaired", cell.unpaired}, {"ratios", std::move(ratios)}});
  }
  return out;
}

}  // namespace doorbell::sweep
