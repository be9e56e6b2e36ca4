// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>

#include "cli/commands.hpp"
#include "cli/completion/words.hpp"
#include "cli/offers.hpp"
#include "cli/output.hpp"
#include "cli/report_page.hpp"
#include "cli/run_sweep.hpp"
#include "cli/sweep_cases.hpp"
#include "report/layout.hpp"
#include "report/verdict.hpp"
#include "sweep/folder.hpp"
#include "sweep/ranks/launcher.hpp"
#include "sweep/ranks/team.hpp"
#include "system/open_file.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

/// A word that a terminal must not get as it is, in a shell's notation for bytes.
std::string escaped_word(const std::string& word) {
  std::string out = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) out += fmt::format("\\x{:02x}", byte);
    else if (c == '\'' || c == '\\') out += fmt::format("\\{}", c);
    else out += c;
  }
  return out + "'";
}

/// A word, quoted for a shell if necessary.
std::string shell_word(const std::string& word) {
  if (report::printable(word) != word) return escaped_word(word);
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "-_=+./:,@%") == std::string::npos;
  if (plain) return word;
  return shell_quoted(word);
}

int list(const PreparedSweep& s) {
  for (const sweep::Turn& turn : s.turns) {
    std::string line = fmt::format("{:>4}", sweep::shown_number(turn.cell));
    if (s.plan.rounds > 1) line += fmt::format(" round {}", turn.round);
    line += fmt::format("  doorbell {}", s.plan.subject->name);
    const sweep::Cell& cell = s.cells[turn.cell];
    for (const std::string& word : cell.arguments) line += " " + shell_word(word);
    if (cell.pair) line += fmt::format("  # from {} to {}", cell.pair->from.text(), cell.pair->to.text());
    fmt::print("{}\n", line);
  }
  return 0;
}

std::string folder_for(const Options& options, const sweep::Plan& plan) {
  if (options.has("out")) return options.text("out");
  if (options.flag("resume"))
    throw Error("--resume", "it does not say what to go on with", "give the folder: --out DIR");
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  (void)std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &local);
  const std::string base = fmt::format("results/{}-{}", plan.name, stamp);
  std::string folder = base;
  for (int n = 2; fs::exists(folder); ++n) folder = fmt::format("{}-{}", base, n);
  return folder;
}

int run_plan(const Options& options, Context& context, sweep::Team* team) {
  SweepRequest request;
  options.read_into(request);
  request.team = team;
  const std::unique_ptr<PreparedSweep> s = prepare_sweep(request, context);
  if (options.flag("list")) return list(*s);

  const std::string path = folder_for(options, s->plan), html = options.text("html");
  std::vector<std::string> inputs = sweep::files_of(s->plan);
  std::ranges::copy(sweep::files_in(path), std::back_inserter(inputs));
  check_page(html, inputs);
  check_junit_name(options);
  check_output("junit", options.text("junit"), inputs);
  if (same_file(options.text("junit"), html))
    throw Error("--junit", "--html writes to the same file", "give them two files");
  if (const std::string why = html.empty() ? "" : why_no_page(); !why.empty())
    throw Error("--html " + html, why, "install what is missing, or make the page later (docs/sweep.md)");
  SweepRun how;
  options.read_into(how);
  how.folder = path;
  const SweepOutcome o = run_sweep(*s, how, context);
  if (!how.quiet) fmt::print("{}\n{}\nresults: {}\n", o.summary, o.verdict, report::printable(path));
  else if (o.code != 0) fmt::print(stderr, "{}\n", o.verdict);
  int code = write_junit(options, "doorbell sweep " + s->plan.name, cases_of(*s, o), o.code);
  if (const std::string why = html.empty() ? "" : make_page(path, html, s->plan.title, how.bits);
      !why.empty()) {
    fmt::print(stderr, "{} sweep: --html {}: {}\n", context.program, report::printable(html), why);
    code = report::worse_of(code, static_cast<int>(ExitCode::usage));
  }
  std::fflush(stdout);
  if (!o.failure.empty()) fmt::print(stderr, "{} sweep: {}\n", context.program, o.failure);
  return code;
}

int run_rank(const Options& options, Context& context) {
  const std::optional<sweep::Launcher> started = sweep::launcher();
  // A single rank is a run like any other, and needs no MPI.
  if (!started || started->size == 1) return run_plan(options, context, nullptr);
  sweep::Team team(*started, &context.stop);
  if (team.rank() == 0) return run_plan(options, context, &team);
  team.serve();
  // Failures are rank 0's to tell: a launcher ends all ranks when one of them ends with an error.
  return 0;
}

}  // namespace

Command sweep_command() {
  Command c;
  c.name = "sweep";
  c.means = {"plan", "report"};
  c.summary = "run a plan's matrix of cells, one process each, and keep every result";
  c.description = {
      "Reads a plan (YAML): a command, its options, and lists of values whose combinations are the cells. All cells "
      "are checked before the first one runs.",
      "Each cell is a run of doorbell in a process of its own, so that one that crashes or hangs is one failed cell. "
      "Its whole result is a line of results.jsonl in the output folder, on the disk before the next cell starts, "
      "and its repeats are rows of runs.csv. The same plan with the same --out goes on where it was stopped.",
      "A plan with the key 'pairs' measures between hosts: under an MPI launcher (mpirun -np N doorbell sweep PLAN) each cell "
      "is run for each pair of ranks, one of which listens while the other connects. Rank 0 keeps the results; the report "
      "shows them as a heat map.",
      "Figures that others published can be shown beside ours (key 'reference'); they stay in columns of their own, "
      "labelled 'published, other machine'.",
      "docs/sweep.md describes the plan's keys. The exit code is the worst of all cells: 2 over 130 (interrupted) over 1 "
      "over 0. A cell that this machine cannot run is skipped, which is no failure: 77 means that none could be run.",
  };
  c.options.group("Sweep")
      .add({.name = "plan",
            .kind = Kind::path,
            .metavar = "PLAN",
            .offers = plan_words,
            .help = "the plan's file; 'plans/NAME' that is not here is one that comes with doorbell",
            .operand = true,
            .required = true,
            .into = {find_plan, &SweepRequest::plan}})
      .add({.name = "out",
            .kind = Kind::directory,
            .help =
                "the folder for plan.yaml, results.jsonl and runs.csv (not given: results/NAME-DATE-TIME)"})
      .add(
          {.name = "resume",
           .help =
               "go on with the sweep in --out; refuse when there is none (without it, a sweep of the same plan "
               "in --out is gone on with, too)",
           .into = &SweepRun::resume})
      .add({.name = "only",
            .metavar = "KEY=VALUE[,...]",
            .help = "run only cells that have these values; of a key that is given more than once, any",
            .into = &SweepRequest::only})
      .add(
          {.name = "profile",
           .metavar = "NAME",
           .help =
               "a form of the plan that it describes under 'profiles': quick, for the plans that come with doorbell",
           .into = &SweepRequest::profile})
      .add({.name = "list",
            .kind = Kind::flag,
            .help = "print each run's command line in order and run nothing"})
      .add({.name = "seed",
            .default_text = "1",
            .help = "seed of the order, for a plan with 'order: shuffled'",
            .into = &SweepRequest::seed})
      .add({.name = "cell-timeout",
            .kind = Kind::seconds,
            .default_text = "1h",
            .min = 0.1,
            .max = 604800,
            .help = "stop a cell that takes longer; it counts as failed",
            .into = &SweepRun::cell_timeout_s})
      .group("Output")
      .add({.name = "html",
            .kind = Kind::path,
            .help =
                "write the report of the folder to FILE, also when a cell failed or Ctrl-C ended the sweep"})
      .add(units_option({"bits", &SweepRun::bits}))
      .add(junit_option())
      .add({.name = "quiet",
            .letter = 'q',
            .help = "no progress line and no table; errors and what failed are still printed",
            .into = &SweepRun::quiet});
  c.examples = {
      {"doorbell sweep plans/nvme-modes.yaml --list", "Print the cells of a plan."},
      {"doorbell sweep plans/nvme-modes.yaml --out results/modes",
       "Run it; after Ctrl-C the same line goes on with what is missing."},
      {.command = "mpirun -np 4 doorbell sweep plans/pairs-net.yaml --out results/pairs --html pairs.html",
       .text = "TCP and UDP between every two of four hosts, with a heat map.",
       .needs = Needs::other_machine},
      {"doorbell sweep plans/xio-rdma-loopback.yaml --only provider=ionic,size=64KiB",
       "One cell of the matrix, beside the published figure."},
  };
  c.exits = {
      {0, "all that this machine can run is complete and its data good"},
      {1, "usage or environment: a bad plan, a run that could not start, a file that cannot be written"},
      {2, "data errors; a run that crashed or took too long"},
      {77, "nothing could be measured: what every cell needs is absent"},
      {130, "interrupted; the data until then is good"}};
  c.run = run_rank;
  return c;
}

}  // namespace doorbell::cli
