// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/compare.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "measure/statistics.hpp"
#include "sweep/shift.hpp"

namespace doorbell::sweep {

namespace {

Change change_of(const Ratio& r, double threshold) {
  if (r.ci_level < kLevel) return Change::undecided;
  // Symmetric: a rate that falls to 1/1.05 is as far away as a time that grows to 1.05.
  const double limit = 1 + threshold;
  if (r.ci_low <= 1 && r.ci_high >= 1)
    return r.ci_low >= 1 / limit && r.ci_high <= limit ? Change::same : Change::undecided;
  const bool up = r.median > 1;
  const bool beyond = (up ? r.median : 1 / r.median) > limit;
  if (up == more_is_better(r.metric)) return beyond ? Change::better : Change::slightly_better;
  return beyond ? Change::regression : Change::slightly_worse;
}

std::vector<double> figures_of(const std::vector<std::optional<double>>& runs) {
  std::vector<double> known;
  for (const auto& run : runs)
    if (run && *run > 0) known.push_back(*run);
  return known;
}

std::string text_of(const Failures& failures) {
  std::vector<std::string> parts;
  for (const auto& [what, count] : failures) parts.push_back(fmt::format("{:.0f} {}", count, what));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string text_of(const std::set<std::string>& values) {
  constexpr std::size_t kShown = 200;
  std::string text = fmt::format("{}", fmt::join(values, ", "));
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text.empty() ? "-" : text;
}

/// One side of one cell.
struct Side {
  const char* name;
  const Samples* samples = nullptr;                         ///< null: this side has no such cell
  const Measured::WithoutResult* without_result = nullptr;  ///< null: every run left a Result

  [[nodiscard]] bool bad_data() const {
    return (samples != nullptr && samples->bad_data) ||
           (without_result != nullptr && without_result->bad_data);
  }
  /// Runs in which nothing moved: no factor leads there, and to leave them out would hide them.
  [[nodiscard]] std::size_t stalled() const {
    if (samples == nullptr) return 0;
    const auto rates = samples->metrics.find("ops_per_s");
    if (rates == samples->metrics.end()) return 0;
    return static_cast<std::size_t>(
        std::ranges::count_if(rates->second, [](const auto& rate) { return rate && *rate <= 0; }));
  }
  /// The reason why this side's figures are not valid; "" if they are.
  [[nodiscard]] std::string why_not_comparable() const {
    std::vector<std::string> parts;
    if (samples == nullptr) parts.emplace_back("no such cell");
    else if (!samples->failures.empty()) parts.push_back(text_of(samples->failures));
    if (const std::size_t n = stalled(); n > 0) parts.push_back(fmt::format("{} runs with a rate of 0", n));
    if (without_result != nullptr) parts.push_back(text_of(without_result->failures));
    return parts.empty() ? "" : fmt::format("{}: {}", name, fmt::join(parts, ", "));
  }
};

Side side_of(const char* name, const Measured& m, const std::string& key, const std::string& group) {
  const auto samples = m.cells.find(key);
  const auto without_result = m.without_result.find(group);
  return {name, samples == m.cells.end() ? nullptr : &samples->second,
          without_result == m.without_result.end() ? nullptr : &without_result->second};
}

class Comparer {
 public:
  Comparer(const Measured& before, const Measured& after, const Rules& rules)
      : before_(before), after_(after), rules_(rules) {}

  Comparison run() {
    c_.demands = rules_.demands;
    c_.runs_before = before_.runs;
    c_.runs_after = after_.runs;
    differences(before_.facts, after_.facts, false);
    bool common = false;
    for (const std::string& key : before_.order) common = common || after_.cells.contains(key);
    if (!common && before_.without_result.empty() && after_.without_result.empty())
      throw Error(
          fmt::format("{} and {}", before_.name, after_.name), "they have no cell in common",
          fmt::format("the first one's is '{}', the other's '{}'", before_.order[0], after_.order[0]));
    for (const std::string& key : before_.order) {
      cell(key, before_.cells.at(key).group);
      if (!after_.cells.contains(key)) c_.only_before.push_back(key);
    }
    for (const std::string& key : after_.order) {
      if (before_.cells.contains(key)) continue;
      cell(key, after_.cells.at(key).group);
      c_.only_after.push_back(key);
    }
    cells_without_figures();
    if (const auto n =
            std::ranges::count_if(before_.seen, [&](auto run) { return after_.seen.contains(run); }))
      c_.warnings.push_back(fmt::format("{} of the runs are on both sides", n));
    warnings("A", before_);
    warnings("B", after_);
    return std::move(c_);
  }

 private:
  void cell(const std::string& key, const std::string& group) {
    const Side a = side_of("A", before_, key, group), b = side_of("B", after_, key, group);
    Compared cell;
    cell.label = key;
    cell.new_data_errors = b.bad_data() && !a.bad_data();
    for (const Side& side : {a, b})
      if (std::string why = side.why_not_comparable(); !why.empty())
        cell.why_not_comparable.push_back(std::move(why));
    for (const Side& side : {a, b})
      if (side.samples != nullptr)
        cell.operations.insert(side.samples->operations.begin(), side.samples->operations.end());
    if (a.samples != nullptr && b.samples != nullptr) {
      for (const std::string& metric : rules_.metrics) {
        Ratio r = ratio_of(metric, a.samples->metrics.at(metric), b.samples->metrics.at(metric),
                           rules_.threshold, rules_.level);
        r = ratio_of_repeats(std::move(r), a.samples->repeats.at(metric), b.samples->repeats.at(metric),
                             rules_.threshold, rules_.level);
        if (!cell.why_not_comparable.empty()) r.change = Change::not_comparable;
        const auto [fewer, more] = std::minmax(r.runs_before, r.runs_after);
        cell.unpaired = std::max(cell.unpaired, more - fewer);
        cell.ratios.push_back(std::move(r));
      }
      differences(a.samples->facts, b.samples->facts, true);
    }
    if (b.samples != nullptr) demand(key, *b.samples);
    c_.cells.push_back(std::move(cell));
  }

  void demand(const std::string& key, const Samples& samples) {
    const Demands& d = rules_.demands;
    const auto check = [&](const char* metric, const std::optional<double>& limit) {
      if (!limit) return;
      const std::vector<double> known = figures_of(samples.metrics.at(metric));
      Unmet u{.cell = key, .metric = metric, .figure = {}, .demanded = *limit};
      if (!known.empty()) u.figure = measure::median(known);
      const bool met = u.figure && (more_is_better(metric) ? *u.figure >= *limit : *u.figure <= *limit);
      if (!met) c_.unmet.push_back(std::move(u));
    };
    check("ops_per_s", d.min_ops_per_s);
    check("bytes_per_s", d.min_bytes_per_s);
    check("p99_ns", d.max_p99_ns);
  }

  /// Handles cells for which no run of either side left a figure.
  void cells_without_figures() {
    std::set<std::string> known, groups;
    for (const Measured* m : {&before_, &after_}) {
      for (const auto& [key, samples] : m->cells) known.insert(samples.group);
      for (const auto& [group, runs] : m->without_result) groups.insert(group);
    }
    for (const std::string& group : groups) {
      if (known.contains(group)) continue;
      const Side a = side_of("A", before_, "", group), b = side_of("B", after_, "", group);
      Compared cell;
      cell.label = group.empty() ? "(no cell was measured)" : group;
      cell.why_not_comparable = {a.why_not_comparable(), b.why_not_comparable()};
      cell.new_data_errors = b.bad_data() && !a.bad_data();
      c_.cells.push_back(std::move(cell));
    }
  }

  void differences(const Facts& a, const Facts& b, bool of_cell) {
    std::set<std::string> names;
    for (const Facts* facts : {&a, &b})
      for (const auto& [what, values] : *facts) names.insert(what);
    for (const std::string& what : names) {
      const auto values = [&](const Facts& facts) {
        const auto found = facts.find(what);
        return found == facts.end() ? std::set<std::string>{} : found->second;
      };
      const std::set<std::string> x = values(a), y = values(b);
      if (x == y) continue;
      const auto same = std::ranges::find_if(c_.differences, [&](const Difference& d) {
        return d.what == what && d.before == text_of(x) && d.after == text_of(y) && of_cell == (d.cells > 0);
      });
      if (same != c_.differences.end()) ++same->cells;
      else c_.differences.push_back({what, text_of(x), text_of(y), of_cell ? std::size_t{1} : 0});
    }
  }

  void warnings(const char* side, const Measured& m) {
    for (const auto& [kind, w] : m.warnings)
      c_.warnings.push_back(w.count == 1 && m.runs == 1
                                ? fmt::format("{}: {}", side, w.text)
                                : fmt::format("{}: {} ({} of {} runs)", side, w.text, w.count, m.runs));
  }

  const Measured& before_;
  const Measured& after_;
  const Rules& rules_;
  Comparison c_;
};

}  // namespace

std::size_t Comparison::figures(Change change) const {
  std::size_t n = 0;
  for (const Compared& c : cells)
    n += static_cast<std::size_t>(
        std::ranges::count_if(c.ratios, [&](const Ratio& r) { return r.change == change; }));
  return n;
}

std::size_t Comparison::figures() const {
  std::size_t n = 0;
  for (const Compared& c : cells) n += c.ratios.size();
  return n;
}

std::size_t Comparison::not_comparable() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cells, [](const Compared& c) { return !c.why_not_comparable.empty(); }));
}

std::size_t Comparison::new_data_errors() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(cells, [](const Compared& c) { return c.new_data_errors; }));
}

report::ColumnUnit Comparison::rate_unit() const {
  bool packets = false, others = false;
  for (const Compared& c : cells)
    for (const std::string& operation : c.operations)
      (operation == report::kPacket ? packets : others) = true;
  return report::rate_unit(packets, others);
}

int Comparison::exit_code() const {
  const ExitCode code = new_data_errors() > 0                               ? ExitCode::data
                        : regressed() || not_comparable() > 0               ? ExitCode::regression
                        : !unmet.empty()                                    ? ExitCode::regression
                        : demands.decided && figures(Change::undecided) > 0 ? ExitCode::regression
                                                                            : ExitCode::ok;
  return static_cast<int>(code);
}

Ratio ratio_of(const std::string& metric, const std::vector<std::optional<double>>& before,
               const std::vector<std::optional<double>>& after, double threshold, double level) {
  const std::vector<double> a = figures_of(before), b = figures_of(after);
  Ratio r;
  r.metric = metric;
  r.runs_before = a.size();
  r.runs_after = b.size();
  if (!a.empty()) r.before = measure::median(a);
  if (!b.empty()) r.after = measure::median(b);
  if (!r.known()) return r;
  const Factor factor = factor_of(a, b, level);
  r.median = factor.median;
  r.ci_low = factor.low;
  r.ci_high = factor.high;
  r.ci_level = factor.level;
  r.change = change_of(r, threshold);
  return r;
}

Ratio ratio_of_repeats(Ratio r, const std::vector<double>& before, const std::vector<double>& after,
                       double threshold, double level) {
  const auto above_0 = [](const std::vector<double>& all) {
    std::vector<double> known;
    std::ranges::copy_if(all, std::back_inserter(known), [](double v) { return v > 0; });
    return known;
  };
  const std::vector<double> a = above_0(before), b = above_0(after);
  if (!r.known() || r.ci_level > 0 || std::min(a.size(), b.size()) < kLeastRuns ||
      std::max(a.size(), b.size()) > kMostRuns)
    return r;
  const Factor factor = factor_of(a, b, level);
  r.by_repeats = true;
  r.repeats_before = a.size();
  r.repeats_after = b.size();
  r.median = factor.median;
  r.ci_low = factor.low;
  r.ci_high = factor.high;
  r.ci_level = factor.level;
  const bool apart = r.ci_low > kBetweenProcesses || r.ci_high < 1 / kBetweenProcesses;
  r.change = apart ? change_of(r, threshold) : Change::undecided;
  return r;
}

Comparison compare(const Measured& before, const Measured& after, const Rules& rules) {
  return Comparer(before, after, rules).run();
}

}  // namespace doorbell::sweep
