// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Comparisons as text and as JSON.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "report/layout.hpp"
#include "sweep/compare.hpp"
#include "sweep/shift.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;
using report::digits;
using report::printable;

std::string figure(const std::string& metric, double v, const report::ColumnUnit& rate) {
  const auto in = [&](const report::ColumnUnit& unit) { return digits(v / unit.unit) + " " + unit.name; };
  if (metric == "ops_per_s") return in(rate);
  if (metric == "bytes_per_s") return in(report::bandwidth_unit(false));
  return digits(v / 1e3) + " us";
}

/// Undecided whatever its runs show: they do not suffice for an interval.
bool too_few(const Ratio& r) {
  return r.change == Change::undecided && (r.ci_level < kLevel || r.by_repeats);
}

std::vector<std::string> row_of(const Ratio& r, const report::ColumnUnit& rate) {
  std::vector<std::string> row = {r.metric, fmt::format("{} and {}", r.runs_before, r.runs_after),
                                  r.runs_before > 0 ? figure(r.metric, r.before, rate) : "-",
                                  r.runs_after > 0 ? figure(r.metric, r.after, rate) : "-",
                                  r.known() ? fmt::format("{:.3f}", r.median) : "-"};
  if (r.ci_level > 0) {
    row.push_back(fmt::format("{:.3f} to {:.3f}", r.ci_low, r.ci_high));
    row.push_back(fmt::format("{:.1f}", r.ci_level * 100));
  } else {
    row.insert(row.end(), {"-", "-"});
  }
  std::string said = too_few(r) ? "undecided: too few runs" : name(r.change);
  if (r.by_repeats && r.change != Change::not_comparable)
    said += fmt::format("{} by {} and {} repeats of few processes", too_few(r) ? "; interval" : ",",
                        r.repeats_before, r.repeats_after);
  row.push_back(std::move(said));
  return row;
}

/// "ops_per_s at least 100 kIOPS, p99_ns at most 50 us".
std::string demanded(const Demands& d, const report::ColumnUnit& rate) {
  std::vector<std::string> parts;
  const auto add = [&](const char* metric, const std::optional<double>& limit) {
    if (limit)
      parts.push_back(fmt::format("{} {} {}", metric, more_is_better(metric) ? "at least" : "at most",
                                  figure(metric, *limit, rate)));
  };
  add("ops_per_s", d.min_ops_per_s);
  add("bytes_per_s", d.min_bytes_per_s);
  add("p99_ns", d.max_p99_ns);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::size_t decided_by_repeats(const Comparison& c) {
  std::size_t n = 0;
  for (const Compared& cell : c.cells)
    n += static_cast<std::size_t>(std::ranges::count_if(cell.ratios, [](const Ratio& r) {
      return r.by_repeats && r.change != Change::undecided && r.change != Change::not_comparable;
    }));
  return n;
}

/// Advice on what to measure so that undecided figures become decided.
std::string advice(const Comparison& c) {
  std::size_t fewest = kMostRuns, few = 0;
  for (const Compared& cell : c.cells)
    for (const Ratio& r : cell.ratios) {
      if (r.change == Change::undecided) fewest = std::min({fewest, r.runs_before, r.runs_after});
      if (too_few(r)) ++few;
    }
  if (c.in_turns)
    return few > 0 ? fmt::format(
                         "a verdict takes {} or more runs on each side: give them more time, or shorter runs",
                         kLeastRuns)
                   : "the runs differ too much among themselves: calm the machine, or give them more time";
  if (few > 0)
    return fmt::format(
        "{} of them with too few runs: a verdict takes {} or more independent runs on each side: sweep a plan with "
        "'rounds: {}', or compare two folders of {} results each",
        few, kLeastRuns, kGoodRuns, kGoodRuns);
  return fmt::format(
      "the runs differ too much among themselves: calm the machine, measure longer, or sweep with 'rounds: {}'",
      std::max(2 * kGoodRuns, 2 * fewest));
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
    case Change::slightly_better:
      return "better, within the threshold";
    case Change::slightly_worse:
      return "worse, within the threshold";
    case Change::regression:
      return "REGRESSION";
    case Change::not_comparable:
      return "not comparable";
  }
  return "";
}

const char* word(Change change) {
  switch (change) {
    case Change::slightly_better:
      return "slightly better";
    case Change::slightly_worse:
      return "worse";
    case Change::regression:
      return "regression";
    default:
      return name(change);
  }
}

std::string text_of(const Unmet& u, const report::ColumnUnit& rate) {
  const char* what = more_is_better(u.metric) ? "TOO SLOW" : "TOO LATE";
  return fmt::format("{}: {}: {} of B is {}, and {} {} is demanded", what, printable(u.cell), u.metric,
                     u.figure ? figure(u.metric, *u.figure, rate) : "not known",
                     more_is_better(u.metric) ? "at least" : "at most", figure(u.metric, u.demanded, rate));
}

std::string to_text(const Comparison& c, const std::string& before, const std::string& after) {
  const auto runs = [](std::size_t n) { return fmt::format("{} run{}", n, n == 1 ? "" : "s"); };
  std::string out = fmt::format("A: {}, {}\nB: {}, {}\n", printable(before), runs(c.runs_before),
                                printable(after), runs(c.runs_after));
  if (!c.across.empty())
    out +=
        fmt::format("cells are paired across: {}\n", printable(fmt::format("{}", fmt::join(c.across, ", "))));
  if (c.differences.empty()) out += "the same: build, machine, devices, options\n";
  else {
    std::vector<std::vector<std::string>> rows = {{"what differs", "cells", "A", "B"}};
    for (const Difference& d : c.differences)
      rows.push_back({printable(d.what), d.cells == 0 ? "all" : fmt::format("{}", d.cells),
                      printable(d.before), printable(d.after)});
    out += report::table(rows);
  }
  for (const std::string& warning : c.warnings) out += fmt::format("warning: {}\n", printable(warning));
  const report::ColumnUnit rate = c.rate_unit();
  for (const Compared& cell : c.cells) {
    out += printable(cell.label) + "\n";
    if (!cell.ratios.empty()) {
      std::vector<std::vector<std::string>> rows = {
          {"metric", "runs", "A", "B", "B/A", "interval", "level %", "verdict"}};
      for (const Ratio& r : cell.ratios) rows.push_back(row_of(r, rate));
      out += report::table(rows);
    }
    if (!cell.why_not_comparable.empty())
      out += fmt::format("  not comparable: {}\n",
                         printable(fmt::format("{}", fmt::join(cell.why_not_comparable, "; "))));
  }
  return out;
}

std::string verdict(const Comparison& c, double percent) {
  const report::ColumnUnit rate = c.rate_unit();
  const std::size_t all = c.figures(), undecided = c.figures(Change::undecided);
  std::vector<std::string> lines;
  const std::size_t by_repeats = decided_by_repeats(c);
  std::string met;
  if (const std::size_t n = c.new_data_errors(); n > 0)
    lines.push_back(fmt::format("FAILED: {} of {} cells have data errors in B that they do not have in A", n,
                                c.cells.size()));
  if (const std::size_t n = c.not_comparable(); n > 0)
    lines.push_back(
        fmt::format("NOT COMPARABLE: {} of {} cells are not sound on both sides", n, c.cells.size()));
  if (const std::size_t n = c.figures(Change::regression); n > 0)
    lines.push_back(
        fmt::format("REGRESSION: {} of {} figures are worse by more than {} %{}", n, all, percent,
                    // A change of the machine looks like a change of the program.
                    c.warnings.empty() || c.in_turns
                        ? ""
                        : "; the results carry warnings: if in doubt measure both sides in turns"));
  for (const Unmet& u : c.unmet) lines.push_back(text_of(u, rate));
  if (const std::string text = demanded(c.demands, rate); c.unmet.empty() && !text.empty())
    met = fmt::format("B has what is demanded in every cell: {}", text);
  if (undecided > 0)
    lines.push_back(fmt::format("UNDECIDED, which counts as a {}: {} of {} figures; {}",
                                c.demands.decided ? "failure" : "pass", undecided, all, advice(c)));
  if (lines.empty())
    lines.push_back(fmt::format("OK: none of {} figures is worse by more than {} %", all, percent));
  if (by_repeats > 0)
    lines.push_back(fmt::format(
        "{} of {} verdicts are by repeats of too few processes: these agree for reasons that the next process does "
        "not share, so only a factor beyond {} counts, and {} runs a side would say more",
        by_repeats, all, kBetweenProcesses, kGoodRuns));
  if (!met.empty()) lines.push_back(std::move(met));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

Json to_json(const Comparison& c) {
  Json out{{"schema", "doorbell.compare/1"},
           {"regression", c.regressed()},
           {"exit_code", c.exit_code()},
           {"not_comparable", c.not_comparable()},
           {"new_data_errors", c.new_data_errors()},
           {"undecided", c.figures(Change::undecided)},
           {"decided_by_repeats", decided_by_repeats(c)},
           {"demands", Json::object()},
           {"unmet", Json::array()},
           {"across", c.across},
           {"runs_before", c.runs_before},
           {"runs_after", c.runs_after},
           {"differences", Json::array()},
           {"cells", Json::array()},
           {"only_before", c.only_before},
           {"only_after", c.only_after},
           {"warnings", c.warnings}};
  for (const auto& [name, limit] : {std::pair{"min_ops_per_s", c.demands.min_ops_per_s},
                                    {"min_bytes_per_s", c.demands.min_bytes_per_s},
                                    {"max_p99_ns", c.demands.max_p99_ns}})
    out["demands"][name] = limit ? Json(*limit) : Json(nullptr);
  out["demands"]["decided"] = c.demands.decided;
  for (const Unmet& u : c.unmet)
    out["unmet"].push_back({{"cell", u.cell},
                            {"metric", u.metric},
                            {"figure", u.figure ? Json(*u.figure) : Json(nullptr)},
                            {"demanded", u.demanded}});
  for (const Difference& d : c.differences)
    out["differences"].push_back({{"what", d.what},
                                  {"before", d.before},
                                  {"after", d.after},
                                  {"cells", d.cells == 0 ? Json(nullptr) : Json(d.cells)}});
  for (const Compared& cell : c.cells) {
    Json ratios = Json::array();
    for (const Ratio& r : cell.ratios) {
      const auto known = [&](double v) { return r.known() ? Json(v) : Json(nullptr); };
      ratios.push_back({{"metric", r.metric},
                        {"pairs", std::min(r.runs_before, r.runs_after)},
                        {"runs_before", r.runs_before},
                        {"runs_after", r.runs_after},
                        {"before", known(r.before)},
                        {"after", known(r.after)},
                        {"ratio", known(r.median)},
                        {"ci_low", known(r.ci_low)},
                        {"ci_high", known(r.ci_high)},
                        {"ci_level", r.ci_level},
                        {"basis", r.ci_level <= 0 ? Json(nullptr) : Json(r.by_repeats ? "repeats" : "runs")},
                        {"repeats_before", r.by_repeats ? Json(r.repeats_before) : Json(nullptr)},
                        {"repeats_after", r.by_repeats ? Json(r.repeats_after) : Json(nullptr)},
                        {"verdict", word(r.change)}});
    }
    out["cells"].push_back({{"cell", cell.label},
                            {"operations", cell.operations},
                            {"unpaired", cell.unpaired},
                            {"not_comparable", cell.why_not_comparable},
                            {"ratios", std::move(ratios)}});
  }
  return out;
}

}  // namespace doorbell::sweep
