// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/report_page.hpp"
#include "cli/run_options.hpp"
#include "options/suggest.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report/layout.hpp"
#include "sweep/across.hpp"
#include "sweep/compare.hpp"
#include "sweep/folder.hpp"
#include "system/open_file.hpp"

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

/// With the other files of a sweep's folder, without which it is none.
std::vector<std::string> files_beside(std::vector<std::string> files) {
  const std::size_t given = files.size();
  for (std::size_t i = 0; i < given; ++i) {
    const std::filesystem::path file = files[i];
    if (file.filename() == sweep::kWritten[0])
      std::ranges::copy(sweep::files_in(file.parent_path().string()), std::back_inserter(files));
  }
  return files;
}

/// Makes sure that the comparison's file does not replace one that is compared, under any name.
void check_written(const std::string& option, const std::string& path, const sweep::Measured& before,
                   const sweep::Measured& after) {
  check_output(option, path);
  for (const sweep::Measured* m : {&before, &after})
    for (const std::string& file : files_beside(m->files))
      if (same_file(path, file))
        throw Error(fmt::format("--{} {}", option, path), fmt::format("it is {}, which is compared", file),
                    "give it another name");
}

int run_compare(const Options& options, Context& context) {
  const std::vector<std::string> metrics = metrics_of(options.text("metric"));
  const std::string before = options.text("before"), after = options.text("after");
  const std::string json = options.text("json"), html = options.text("html");
  std::string page_error;
  const double percent = options.real("threshold");
  sweep::Measured a = sweep::load_measured(before), b = sweep::load_measured(after);
  check_written("json", json, a, b);
  check_written("html", html, a, b);
  check_page(html, {json});
  std::vector<std::string> across;
  if (options.has("across")) {
    across = split(options.text("across"));
    sweep::pair_across(across, &a, &b, "--across");
  }
  sweep::Comparison c = sweep::compare(a, b, metrics, percent / 100);
  c.across = across;
  const bool silent = options.flag("quiet") || json == "-";
  if (!silent) fmt::print("{}{}\n", sweep::to_text(c, before, after), sweep::verdict(c, percent));
  else if (c.exit_code() != 0) fmt::print(stderr, "{}\n", sweep::verdict(c, percent));
  nlohmann::ordered_json document = sweep::to_json(c);
  document["before"] = before;
  document["after"] = after;
  document["threshold_percent"] = percent;
  const std::string text = report::to_string(document);
  if (!html.empty()) page_error = make_page_of(text, html);
  if (!page_error.empty()) {
    std::fflush(stdout);
    fmt::print(stderr, "{} compare: --html {}: {}\n", context.program, report::printable(html), page_error);
  }
  const int code =
      c.exit_code() == 0 && !page_error.empty() ? static_cast<int>(ExitCode::usage) : c.exit_code();
  if (json.empty()) return code;
  try {
    report::write_file(json, text);
  } catch (const Error& e) {
    // The comparison has been printed and still counts.
    std::fflush(stdout);
    fmt::print(stderr, "{} compare: {}\n", context.program, report::printable(e.what()));
    return code == 0 ? static_cast<int>(e.code()) : code;
  }
  return code;
}

}  // namespace

Command compare_command() {
  Command c;
  c.name = "compare";
  c.summary = "compare two results cell by cell, with confidence";
  c.description = {
      "Says of each cell of two results by which factor it differs, and whether its runs show that. What one "
      "process repeats is alike for reasons that the next process does not share, so a run is one observation, its "
      "figure the median of its repeats. Runs are a sweep's rounds, or the result files of a folder: at least 4 on "
      "each side, better 7 ('rounds: 7' in the plan). The factor is the median of B/A over all pairs of runs, with an "
      "interval at 95 % that also holds when one side spreads more than the other.",
      "Differences between the two sides that are no figures (device, options, verification, build, machine) and "
      "the warnings of the results come first. A cell that is missing, incomplete or has errors on a side is not "
      "comparable.",
      "Exit code 2 when B has data errors in a cell where A has none; 3 when a figure is worse by more than "
      "--threshold and its interval excludes 1, or a cell is not comparable; else 0, which an undecided figure "
      "does not change.",
  };
  c.options.group("Compare")
      .add({.name = "before",
            .kind = Kind::path,
            .metavar = "A",
            .help =
                "a result (.json), a folder of results, a sweep's folder or its results.jsonl: what it was",
            .operand = true,
            .required = true})
      .add({.name = "after",
            .kind = Kind::path,
            .metavar = "B",
            .help = "the same of what it is",
            .operand = true,
            .required = true})
      .add({.name = "threshold",
            .kind = Kind::real,
            .metavar = "PERCENT",
            .default_text = "5",
            .min = 0,
            .max = 1000,
            .help =
                "the least effect: what differs by less, in either direction, is no regression and no gain"})
      .add({.name = "metric",
            .metavar = "METRIC[,...]",
            .default_text = "ops_per_s",
            .help = "what is compared: ops_per_s, bytes_per_s, mean_ns, p50_ns, p99_ns, p99_9_ns"})
      .add(
          {.name = "across",
           .metavar = "OPTION[,...]",
           .help =
               "pair cells although they differ in OPTION, and in parameters that follow from it: for two sweeps "
               "that differ in it on purpose"})
      .group("Output")
      .add({.name = "json",
            .kind = Kind::path,
            .help = "write the comparison to FILE as JSON (schema doorbell.compare/1)"})
      .add(
          {.name = "html",
           .kind = Kind::path,
           .help = "write the comparison to FILE as a page with a picture of the ratios and their intervals"})
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "print nothing; what makes the exit code other than 0 still goes to standard error"});
  c.examples = {
      {"doorbell compare results/before results/after", "Two sweeps of the same plan, with 'rounds: 7'."},
      {"doorbell compare before after --metric ops_per_s,p99_ns --threshold 3",
       "Two folders of results, a file a run; 3 % worse is a regression."},
      {"doorbell compare results/model results/kernel --across controller",
       "The same plan with two controllers, one for each sweep."},
  };
  c.exits = {{0, "no regression was found, though figures may be undecided"},
             {1, "usage or environment: a bad option, a missing file, no permission"},
             {2, "B has data errors where A has none"},
             {3, "a regression, or cells that cannot be compared"}};
  c.run = run_compare;
  c.stoppable = false;
  return c;
}

}  // namespace doorbell::cli
