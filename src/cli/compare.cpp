// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "options/suggest.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "sweep/compare.hpp"

namespace doorbell::cli {

namespace {

std::vector<std::string> metrics_of(const std::string& text) {
  std::vector<std::string> metrics;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string metric = text.substr(at, end - at);
    at = end + 1;
    const std::vector<std::string>& known = sweep::metric_names();
    if (std::ranges::find(known, metric) == known.end()) {
      const std::string near = nearest(metric, known);
      throw Error("--metric",
                  fmt::format("unknown metric '{}'{}", metric,
                              near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
                  fmt::format("the metrics are {}", fmt::join(known, ", ")));
    }
    if (std::ranges::find(metrics, metric) != metrics.end())
      throw Error("--metric", fmt::format("'{}' is given twice", metric));
    metrics.push_back(metric);
  }
  return metrics;
}

std::string verdict(const sweep::Comparison& c, double percent) {
  std::size_t regressions = 0, undecided = 0, all = 0;
  for (const sweep::Compared& cell : c.cells)
    for (const sweep::Ratio& r : cell.ratios) {
      ++all;
      if (r.change == sweep::Change::regression) ++regressions;
      if (r.change == sweep::Change::undecided) ++undecided;
    }
  std::string text =
      regressions > 0
          ? fmt::format("REGRESSION: {} of {} figures are worse by more than {} %", regressions, all, percent)
          : fmt::format("OK: none of {} figures is worse by more than {} %", all, percent);
  if (undecided == all)
    return fmt::format(
        "UNDECIDED: none of {} figures has the 6 pairs of repeats that an interval at 95 % takes", all);
  if (undecided > 0)
    text += fmt::format("; {} undecided (an interval at 95 % takes 6 pairs of repeats)", undecided);
  return text;
}

int run(const Options& options, Context&) {
  const std::vector<std::string> metrics = metrics_of(options.text("metric"));
  const std::string before = options.text("before"), after = options.text("after");
  const double percent = options.real("threshold");
  const sweep::Comparison c =
      sweep::compare(sweep::load_measured(before), sweep::load_measured(after), metrics, percent / 100);
  const std::string json = options.text("json");
  if (!json.empty()) report::write_file(json, report::to_string(sweep::to_json(c)));
  if (!options.flag("quiet") && json != "-")
    fmt::print("{}{}\n", sweep::to_text(c, before, after), verdict(c, percent));
  return static_cast<int>(c.regressed() ? ExitCode::regression : ExitCode::ok);
}

}  // namespace

Command compare_command() {
  Command c;
  c.name = "compare";
  c.summary = "compare two results cell by cell, with confidence";
  c.description = {
      "Pairs the cells of two results by path and parameters, and their repeats in order; prints the median of the "
      "ratios B/A with its interval by order statistics. Something is different only when the interval excludes 1, "
      "and undecided while there are too few repeats for 95 %.",
      "Exit code 3 when a figure is worse by more than --threshold and its interval excludes 1; else 0.",
  };
  c.options
      .add({.name = "before",
            .kind = Kind::path,
            .metavar = "A",
            .help = "a result (.json), a sweep's folder or its results.jsonl: what it was",
            .group = "Compare",
            .operand = true,
            .required = true})
      .add({.name = "after",
            .kind = Kind::path,
            .metavar = "B",
            .help = "the same of what it is",
            .group = "Compare",
            .operand = true,
            .required = true})
      .add({.name = "threshold",
            .kind = Kind::real,
            .metavar = "PERCENT",
            .default_text = "5",
            .min = 0,
            .max = 1000,
            .help = "a figure that is worse by more than this is a regression",
            .group = "Compare"})
      .add({.name = "metric",
            .kind = Kind::text,
            .metavar = "METRIC[,...]",
            .default_text = "ops_per_s",
            .help = "what is compared: ops_per_s, bytes_per_s, mean_ns, p50_ns, p99_ns, p99_9_ns",
            .group = "Compare"})
      .add({.name = "json",
            .kind = Kind::path,
            .help = "write the comparison to FILE as JSON (schema doorbell.compare/1)",
            .group = "Output"})
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "print nothing but errors",
            .group = "Output"});
  c.examples = {
      {"doorbell compare results/before results/after", "Two sweeps of the same plan."},
      {"doorbell compare a.json b.json --metric ops_per_s,p99_ns --threshold 3",
       "Two results of one command; 3 % worse is a regression."},
  };
  c.run = run;
  c.stoppable = false;
  return c;
}

}  // namespace doorbell::cli
