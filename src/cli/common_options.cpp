// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Options that every path has. A path may give some of them another default with set_default().
#include "cli/compare_turns.hpp"
#include "cli/run_options.hpp"
#include "measure/settings.hpp"

namespace doorbell::cli {

Option fault_option(std::string help, std::string group) {
  return {.name = measure::setting::fault.option(),
          .metavar = "KIND=P[,...]",
          .min = 0,
          .max = 1,
          .choices = model::fault_names(),
          .help = std::move(help),
          .group = std::move(group),
          .brief = "make the model go wrong: corrupt=0.001",
          .into = {fault_rates, &RunOptions::faults, &model::Use::faults}};
}

Option units_option(Into into) {
  return {.name = "units",
          .default_text = "bytes",
          .choices = {"bytes", "bits"},
          .help = "print payload a second in GB/s or in Gb/s; files have bytes",
          .group = "Output",
          .into = std::move(into)};
}

Option junit_option() {
  return {
      .name = "junit",
      .kind = Kind::path,
      .help =
          "write verdicts to FILE as JUnit XML, which CI systems show: a test case a cell; failed where data is "
          "wrong or a figure is worse than it may be, skipped where what it needs is absent",
      .group = "Output"};
}

Option versus_option() {
  return {
      .name = "versus",
      .metavar = "'OPTION...'",
      .help =
          "run this (A), and this with these options in place of its own or besides them (B), in turns, and say "
          "which is faster: 'doorbell compare' with its usual options, whose --json, --junit and --quiet these "
          "then are",
      .group = "Output"};
}

void add_common_options(OptionTable& table) {
  table.group("Initiator")
      .add({.name = measure::setting::initiator.option(),
            .default_text = "cpu",
            .choices = {"cpu", "gpu"},
            .help = "who posts the work and polls for its completion: a CPU thread or a GPU kernel",
            .brief = "who posts and polls: a thread or a kernel",
            .into = &RunOptions::initiator})
      .add({.name = "gpu",
            .default_text = "0",
            .min = 0,
            .max = 1023,
            .help = "the GPU to use, by its number in 'doorbell list'",
            .into = &RunOptions::gpu})
      .group("Run")
      .add({.name = measure::setting::duration.option(),
            .aliases = {"time", "runtime"},
            .letter = 't',
            .kind = Kind::seconds,
            .min = 0.001,
            .max = 86400,
            .help = "run each repeat for this long instead of for a count of operations",
            .brief = "run each repeat for so long, not for a count",
            .into = &RunOptions::duration_s})
      .add({.name = "warmup",
            .kind = Kind::seconds,
            .min = 0,
            .max = 3600,
            .help =
                "work for this long before the first repeat, uncounted but for errors (not given: a tenth of "
                "--duration, at most 1 s; nothing before a run by count)",
            .into = &RunOptions::warmup_s})
      .add({.name = measure::setting::repeats.option(),
            .min = 1,
            .max = 1000,
            .help =
                "measure this many times; figures are the median repeat's, with a confidence interval (not "
                "given: 7 with --duration, 1 for a run by count)",
            .into = &RunOptions::repeats})
      .add({.name = "seed",
            .default_text = "1",
            .help = "seed of data, addresses and faults; the same seed gives the same run",
            .into = &RunOptions::seed})
      .add({.name = "timeout",
            .kind = Kind::seconds,
            .default_text = "10",
            .min = 0.001,
            .max = 86400,
            .help = "give up, and say what was outstanding, when nothing has completed for this long",
            .into = &RunOptions::timeout_s})
      .add({.name = "late-after",
            .kind = Kind::seconds,
            .default_text = "1",
            .min = 0.000001,
            .max = 86400,
            .help = "count a completion that took longer than this as late",
            .into = &RunOptions::late_after_s})
      .group("Verification")
      .add(
          {.name = measure::setting::verify.option(),
           .default_text = "on",
           .min = 0.000001,
           .max = 1,
           .choices = {"on", "off", "sample=P", "strict"},
           .help =
               "check all data that comes back, none, or the share P of it; strict: what no run is known to have "
               "written must be whole test data too, all of one write, and is a failure where it is not",
           .brief = "how much of the data is checked",
           .into = {"strict", &RunOptions::strict}})
      .add(fault_option("make a model go wrong: fault KIND happens to each operation with probability P",
                        "Verification"))
      .group("Output")
      .add({.name = "json",
            .kind = Kind::path,
            .help = "write the whole result to FILE as JSON (schema doorbell.results/1)",
            .brief = "the whole result as JSON"})
      .add({.name = "csv", .kind = Kind::path, .help = "write one row per repeat to FILE as CSV"})
      .add({.name = "html",
            .kind = Kind::path,
            .help =
                "write the result to FILE as a page with tables and pictures, which needs nothing beside it"})
      .add(junit_option())
      .add(versus_option())
      .add(
          {.name = "export",
           .metavar = "prometheus=[ADDR:]PORT",
           .help =
               "while the run lasts, serve its rate, latencies and errors by class at http://ADDR:PORT/metrics (ADDR "
               "not given: 127.0.0.1; port 0: a free one); those of a GPU's phase appear when it is over"})
      .add(
          {.name = "details",
           .kind = Kind::flag,
           .help =
               "print every cell as a block with all of its figures (sub-steps, spread, costs, counters) in place "
               "of a row"})
      .add(units_option())
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "no progress line and no table; errors are still printed"});
}

void add_check_options(OptionTable& table) {
  table.group("Verification")
      .add(
          {.name = "check-threads",
           .metavar = "N",
           .min = 0,
           .max = 64,
           .help =
               "CPU initiator: threads that make and check the data, besides those that post; 0: those that post do "
               "it (not given: as many as there are free cores, up to 8 for each)",
           .into = &RunOptions::check_threads})
      .add(
          {.name = "check-warps",
           .default_text = "0",
           .min = 0,
           .max = 256,
           .help =
               "GPU initiator: warps for each queue that make and check the data, as far as half the multiprocessors "
               "go; 0: as many as pay",
           .into = &RunOptions::check_warps});
}

}  // namespace doorbell::cli
