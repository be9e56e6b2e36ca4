// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/commands.hpp"
#include "cli/compare_output.hpp"
#include "cli/compare_turns.hpp"
#include "cli/run_options.hpp"
#include "sweep/across.hpp"
#include "sweep/compare.hpp"
#include "sweep/folder.hpp"

namespace doorbell::cli {

namespace {

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

/// The files that are compared: none of them is to be replaced, under any name.
std::vector<std::string> inputs_of(const sweep::Measured& before, const sweep::Measured& after) {
  std::vector<std::string> files = files_beside(before.files);
  std::ranges::copy(files_beside(after.files), std::back_inserter(files));
  return files;
}

sweep::Comparison compared(const sweep::Measured& a, const sweep::Measured& b, const sweep::Rules& rules) {
  try {
    return sweep::compare(a, b, rules);
  } catch (const Error& e) {
    const std::vector<std::string> options = sweep::differing_options(a, b);
    if (options.size() != 1) throw;
    const std::string why = std::string(e.what()).substr(e.subject().size() + 2);
    throw Error(e.subject(), why,
                fmt::format("they differ in --{} alone: --across {} compares them all the same", options[0],
                            options[0]));
  }
}

/// Options that say how runs are made, where results are there already.
void refuse_running(const Options& options) {
  for (const char* name : {"time-limit", "seed", "baseline"})
    if (options.given(name))
      throw Error(fmt::format("--{}", name), "nothing is run: two results are compared",
                  "for two settings write: doorbell compare -- COMMAND OPTIONS -- OPTIONS");
}

/// hyperfine takes whole commands as words of their own; here each follows a "--".
void refuse_command_lines(const Options& options, const Context& context) {
  std::error_code ignored;
  for (const char* name : {"before", "after"}) {
    const std::string& text = options.text(name);
    const std::string first = text.substr(0, text.find(' '));
    if (text.find(' ') != std::string::npos && !std::filesystem::exists(text, ignored) &&
        std::ranges::find(context.commands, first, &Command::name) != context.commands.end())
      throw Error(text, "it is no result, but a command",
                  "two settings are compared by: doorbell compare -- COMMAND A-OPTIONS -- B-OPTIONS");
  }
}

int run_compare(const Options& options, Context& context) {
  if (context.rest) return run_turns(options, *context.rest, context);
  if (options.has("baseline") && options.has("before") && !options.has("after"))
    throw Error("--baseline " + options.text("baseline"), "it is a program that runs A",
                "two results are compared by: doorbell compare BEFORE.json AFTER.json");
  for (const char* name : {"before", "after"})
    if (!options.has(name))
      throw Error(
          "comparing", fmt::format("{} is missing", name == std::string_view("before") ? "A" : "B"),
          "doorbell compare A B compares two results; doorbell compare -- COMMAND OPTIONS -- OPTIONS runs two "
          "settings in turns");
  refuse_running(options);
  refuse_command_lines(options, context);
  const sweep::Rules rules = rules_of(options);
  const std::string before = options.text("before"), after = options.text("after");
  sweep::Measured a = sweep::load_measured(before), b = sweep::load_measured(after);
  check_comparison_outputs(options, inputs_of(a, b));
  sweep::pair_lengths(&a, &b);
  std::vector<std::string> across;
  if (options.has("across")) {
    across = split(options.text("across"));
    sweep::pair_across(across, &a, &b, "--across");
  }
  sweep::Comparison c = compared(a, b, rules);
  c.across = across;
  const double percent = options.real("threshold");
  ComparisonOutput out{.document = sweep::to_json(c),
                       .cases = cases_of(c),
                       .text = sweep::to_text(c, before, after) + sweep::verdict(c, percent),
                       .short_text = sweep::verdict(c, percent),
                       .code = c.exit_code()};
  out.document["before"] = before;
  out.document["after"] = after;
  out.document["threshold_percent"] = percent;
  return deliver_comparison(out, options, context);
}

}  // namespace

Command compare_command() {
  Command c;
  c.name = "compare";
  c.summary = "compare two results, or two settings that it runs in turns";
  c.usage = "compare [OPTION]... A B | -- COMMAND A-OPTIONS -- B-OPTIONS";
  c.takes_rest = true;
  c.description = {
      "With two results, says of each cell by which factor it differs, and whether its runs show that. What one "
      "process repeats is alike for reasons that the next process does not share, so a run is one observation, its "
      "figure the median of its repeats. Runs are a sweep's rounds, or the result files of a folder: at least 4 on "
      "each side, better 7 ('rounds: 7' in the plan). The factor is the median of B/A over all pairs of runs, with an "
      "interval at 95 % that also holds when one side spreads more than the other. With fewer runs, their repeats make "
      "an interval that says nothing of the next process; a verdict then takes a factor beyond 3 and says what it is "
      "by. Results that differ in how long was measured meet; --across names other options that may differ.",
      "With a command and two lists of options, behind '--' each, runs the two in turns, each run a process of its own, "
      "and says in a sentence which is faster, by how much, and whether the data was right. All options are checked "
      "before anything runs. A side without a duration and without a count is run for 0.5 s at a time; a side by time "
      "without repeats has one, because a run is one observation. The longest that it takes is said first "
      "(--time-limit).",
      "It ends early when no figure is undecided. So that looking again and again finds nothing that is not there, the "
      "figures are looked at 6 times at most: after 4, 8, 16, 32 and 64 runs of each side, and at the end. The error "
      "allowed at 95 % is divided among the 6, so each look's interval is one at 99.2 %, and what is said at the end "
      "holds at 95 %.",
      "Differences between the two sides that are no figures (device, options, verification, build, machine) and "
      "the warnings of the results come first. A cell that is missing, incomplete or has errors on a side is not "
      "comparable.",
      "Exit code 2 when B has data errors in a cell where A has none (of runs in turns: when either side has errors); 3 "
      "when a figure of B is worse than A's by more than --threshold and its interval excludes 1, when a cell is not "
      "comparable, or when B does not reach --min or --max-latency; else 0, which an undecided figure does not change "
      "without --undecided fail.",
  };
  c.options.group("Compare")
      .add({.name = "before",
            .kind = Kind::path,
            .metavar = "A",
            .help =
                "a result (.json), a folder of results, a sweep's folder or its results.jsonl: what it was",
            .operand = true})
      .add({.name = "after",
            .kind = Kind::path,
            .metavar = "B",
            .help = "the same of what it is",
            .operand = true})
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
               "of two results: pair cells although they differ in OPTION, and in parameters that follow from it"})
      .add({.name = "undecided",
            .default_text = "pass",
            .choices = {"pass", "fail"},
            .help = "fail: a figure that stays undecided makes the exit code 3"})
      .add(
          {.name = "min",
           .metavar = "RATE",
           .help =
               "the median rate of B in every cell must be at least this: 100k ops (a second), 1GB/s, 800MiB/s, "
               "10Gb/s (bits)"})
      .add(
          {.name = "max-latency",
           .kind = Kind::seconds,
           .metavar = "TIME",
           .min = 1e-9,
           .max = 86400,
           .help =
               "the median p99 latency of B in every cell must be at most this; a cell that has none (too few "
               "operations were timed) does not reach it"})
      .group("Running in turns")
      .add({.name = "time-limit",
            .kind = Kind::seconds,
            .default_text = "60",
            .min = 0.1,
            .max = 604800,
            .help = "end after this time at the latest; earlier when nothing is undecided"})
      .add({.name = "seed",
            .kind = Kind::integer,
            .default_text = "1",
            .help = "seed of the order: of each two rounds A is first in one, B in the other"})
      .add(
          {.name = "baseline",
           .kind = Kind::path,
           .metavar = "PROGRAM",
           .help =
               "A is run by this doorbell, an earlier one, and B by the one that you call; without options for B "
               "both have A's"})
      .group("Output")
      .add({.name = "json",
            .kind = Kind::path,
            .help = "write the comparison to FILE as JSON (schema doorbell.compare/1)"})
      .add(
          {.name = "html",
           .kind = Kind::path,
           .help = "write the comparison to FILE as a page with a picture of the ratios and their intervals"})
      .add(junit_option())
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "print nothing; what makes the exit code other than 0 still goes to standard error"});
  c.examples = {
      {"doorbell compare -- nvme --in-flight 1 -- nvme --in-flight 32", "Which of two settings is faster?"},
      {"doorbell compare --time-limit 2m --metric p99_ns -- net --stream tcp -- --stream udp",
       "By another metric; the second command may be left out."},
      {"doorbell compare results/before results/after", "Two sweeps of the same plan, with 'rounds: 7'."},
      {"doorbell compare before after --metric ops_per_s,p99_ns --threshold 3",
       "Two folders of results, a file a run; 3 % worse is a regression."},
      {"doorbell compare results/model results/kernel --across controller",
       "The same plan with two controllers, one for each sweep."},
      {.command = "doorbell compare --baseline ./doorbell-1.0 --junit verdict.xml -- nvme --read-io 100k",
       .text = "Is this build slower than an earlier one?",
       .needs = Needs::program},
  };
  c.exits = {{0, "no regression was found, though figures may be undecided"},
             {1, "usage or environment: a bad option, a missing file, no permission"},
             {2, "B has data errors where A has none; in turns: a side has errors"},
             {3, "a regression, cells that cannot be compared, or B does not reach what is demanded"},
             {77, "in turns: the hardware that a side asks for is not here"},
             {130, "in turns: interrupted; the data until then is good, and nothing is concluded"}};
  c.run = run_compare;
  c.stoppable = false;
  return c;
}

}  // namespace doorbell::cli
