// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>

#include "cli/commands.hpp"
#include "cli/parse.hpp"
#include "cli/path.hpp"
#include "cli/progress.hpp"
#include "report/tool.hpp"
#include "report/verdict.hpp"
#include "sweep/run.hpp"
#include "sweep/table.hpp"
#include "sweep/text_file.hpp"
#include "system/open_file.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

/// The commands that a plan can name: each path has one.
std::vector<sweep::Subject> subjects(const Context& context) {
  std::vector<sweep::Subject> found;
  for (const PathDescription& path : paths()) {
    const Command& c = path.command;
    const std::string title = context.program + " " + c.name;
    found.push_back({c.name, c.options, [title, &c](const std::vector<std::string>& words) {
                       Options options = parse(title, c.options, words);
                       if (c.check) c.check(options);
                       return options;
                     }});
  }
  return found;
}

/// A word, quoted for a shell if necessary.
std::string shell_word(const std::string& word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "-_=+./:,@%") == std::string::npos;
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Finds the plan's file. The program comes with plans: if "plans/NAME" is not in the working folder, it is
/// looked up where plans are installed, and in the source tree.
std::string find_plan(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored) || !name.starts_with("plans/")) return name;
  const fs::path exe = fs::read_symlink("/proc/self/exe", ignored);
  for (const char* at : {"../share/doorbell", "../.."}) {
    const fs::path there = exe.parent_path() / at / name;
    if (fs::exists(there, ignored)) return fs::canonical(there, ignored).string();
  }
  return name;
}

/// Makes sure that the sweep does not write to the files that it reads.
void check_inputs(const std::string& folder, const sweep::Plan& plan) {
  std::vector<std::string> inputs = {plan.file};
  for (const sweep::Reference& r : plan.references)
    inputs.push_back((fs::path(plan.file).parent_path() / r.file).string());
  for (const char* name : sweep::kWritten)
    for (const std::string& input : inputs)
      if (const std::string output = fmt::format("{}/{}", folder, name); same_file(input, output))
        throw Error("--out " + folder,
                    fmt::format("the sweep reads {} and would write it as {}", input, output),
                    "give another folder");
}

int list(const sweep::Plan& plan, const std::vector<sweep::Cell>& cells,
         const std::vector<sweep::Turn>& turns) {
  for (const sweep::Turn& turn : turns) {
    std::string line = fmt::format("{:>4}", turn.cell);
    if (plan.rounds > 1) line += fmt::format(" round {}", turn.round);
    line += fmt::format("  doorbell {}", plan.subject->name);
    for (const std::string& word : cells[turn.cell].arguments) line += " " + shell_word(word);
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

void check_folder(const std::string& folder, const std::string& text, bool resume) {
  const std::string title = "--out " + folder;
  switch (sweep::look(folder, text)) {
    case sweep::Found::same:
      return;
    case sweep::Found::nothing:
      if (resume) throw Error("--resume", fmt::format("{} holds no sweep", folder));
      return;
    case sweep::Found::another:
      throw Error(title, "it holds the results of another plan: its plan.yaml differs from this one",
                  "give another folder, or the plan that the folder has");
    case sweep::Found::foreign:
      throw Error(title, "it is not empty and holds no sweep", "give a new or an empty folder");
  }
}

/// The records of earlier runs, checked against the plan.
std::vector<sweep::Record> earlier(const sweep::Plan& plan, const sweep::Folder& folder, std::size_t cells) {
  sweep::Records records = folder.read();
  if (records.torn)
    fmt::print(stderr, "{}: the last line is torn, its cell is run again\n", folder.file("results.jsonl"));
  std::set<std::string> builds;
  for (const sweep::Record& r : records.list) {
    if (r.cell >= cells || r.round >= plan.rounds)
      throw Error(folder.file("results.jsonl"),
                  fmt::format("the plan has no cell {} of round {}", r.cell, r.round));
    if (r.result.is_object() && r.result.contains("tool")) builds.insert(r.result["tool"].value("git", ""));
  }
  builds.insert(report::tool().git);
  if (builds.size() > 1)
    fmt::print(stderr, "warning: the cells are measured by different builds: {}\n", fmt::join(builds, ", "));
  return std::move(records.list);
}

/// Divides existing records into those to keep, and the turns that have yet to run.
std::vector<sweep::Turn> still_to_run(const std::vector<sweep::Turn>& turns,
                                      std::vector<sweep::Record>* records) {
  std::vector<sweep::Turn> todo;
  for (const sweep::Turn& turn : turns) {
    const auto of_turn = [&](const sweep::Record& r) { return r.cell == turn.cell && r.round == turn.round; };
    if (std::ranges::any_of(*records, [&](const auto& r) { return of_turn(r) && r.complete(); })) continue;
    std::erase_if(*records, of_turn);
    todo.push_back(turn);
  }
  return todo;
}

std::string verdict(const std::vector<sweep::Record>& records, std::size_t wanted, int code, bool stopped) {
  const auto whole = std::ranges::count_if(records, [](const auto& r) { return r.complete(); });
  const std::string count = fmt::format("{} of {} runs complete", whole, wanted);
  if (code != 0 && code != static_cast<int>(ExitCode::absent) && code != sweep::kInterrupted)
    return fmt::format("FAILED: {}, exit code {}", count, code);
  if (stopped || code == sweep::kInterrupted)
    return fmt::format("INTERRUPTED: {}; the same command with --out goes on from here", count);
  if (code != 0) return fmt::format("SKIPPED in part: {}, the hardware asked for is absent", count);
  return fmt::format("OK: {}", count);
}

int run_sweep(const Options& options, Context& context) {
  const std::string file = find_plan(options.text("plan"));
  const std::string text = sweep::read_text(file, sweep::kMaxPlan);
  const std::vector<sweep::Subject> commands = subjects(context);
  const sweep::Plan plan = sweep::parse_plan(text, file, commands);
  const std::vector<sweep::Cell> cells = sweep::expand(plan);
  const std::vector<sweep::ReferenceTable> references = sweep::load_references(plan, cells);
  const std::vector<u32> selected = sweep::select(plan, cells, options.text("only"));
  const std::vector<sweep::Turn> turns = sweep::turns(plan, selected, options.integer("seed"));
  if (options.flag("list")) return list(plan, cells, turns);

  const std::string path = folder_for(options, plan);
  check_folder(path, text, options.flag("resume"));
  check_inputs(path, plan);
  sweep::Folder folder(path, text);
  std::vector<sweep::Record> records = earlier(plan, folder, cells.size());
  const std::vector<sweep::Turn> todo = still_to_run(turns, &records);
  folder.keep(records);
  const bool quiet = options.flag("quiet");
  if (!quiet && todo.size() < turns.size())
    fmt::print(stderr, "{}: {} of {} runs are there already\n", path, turns.size() - todo.size(),
               turns.size());

  Progress progress(context.stderr_tty && !quiet);
  const sweep::RunLimits limits = {.cell_timeout_s = options.seconds("cell-timeout")};
  const auto show = [&](std::size_t done, const sweep::Turn& turn, double elapsed_s) {
    std::string what =
        fmt::format("{} of {}, {:.0f} s: cell {}", done + 1, todo.size(), elapsed_s, turn.cell);
    if (plan.rounds > 1) what += fmt::format(" round {}", turn.round);
    progress.update(static_cast<double>(done) / static_cast<double>(todo.size()),
                    what + " " + sweep::label_of(plan, cells[turn.cell]));
  };
  std::string failure;
  try {
    sweep::run(plan, cells, todo, folder, limits, {&context.stop, show}, &records);
  } catch (const Error& e) {
    // What has been measured so far is printed and counts.
    failure = e.hint().empty() ? e.what() : fmt::format("{}\nhint: {}", e.what(), e.hint());
  }
  progress.clear();

  std::erase_if(records,
                [&](const auto& r) { return std::ranges::find(selected, r.cell) == selected.end(); });
  int code = 0;
  for (const sweep::Record& r : records) code = report::worse_of(code, r.code());
  if (!failure.empty()) code = report::worse_of(code, static_cast<int>(ExitCode::usage));
  if (context.stop.requested()) code = report::worse_of(code, sweep::kInterrupted);
  const std::string outcome = verdict(records, turns.size(), code, context.stop.requested());
  if (!quiet)
    fmt::print("{}\n{}\nresults: {}\n", sweep::summary(plan, cells, selected, records, references), outcome,
               path);
  else if (code != 0) fmt::print(stderr, "{}\n", outcome);
  std::fflush(stdout);
  if (!failure.empty()) fmt::print(stderr, "{} sweep: {}\n", context.program, failure);
  return code;
}

}  // namespace

Command sweep_command() {
  Command c;
  c.name = "sweep";
  c.summary = "run a plan's matrix of cells, one process each, and keep every result";
  c.description = {
      "Reads a plan (YAML): a command, its options, and lists of values whose combinations are the cells. All cells "
      "are checked before the first one runs.",
      "Each cell is a run of doorbell in a process of its own, so that one that crashes or hangs is one failed cell. "
      "Its whole result is a line of results.jsonl in the output folder, on the disk before the next cell starts, "
      "and its repeats are rows of runs.csv. The same plan with the same --out goes on where it was stopped.",
      "Figures that others published can be shown beside ours (key 'reference'); they stay in columns of their own, "
      "labelled 'published, other machine'.",
      "docs/sweep.md describes the plan's keys. The exit code is the worst of all cells: 2 over 130 (interrupted) over 1 over "
      "77 over 0.",
  };
  c.options
      .add({.name = "plan",
            .kind = Kind::path,
            .metavar = "PLAN",
            .help = "the plan's file; 'plans/NAME' that is not here is one that comes with doorbell",
            .group = "Sweep",
            .operand = true,
            .required = true})
      .add(
          {.name = "out",
           .kind = Kind::directory,
           .help = "the folder for plan.yaml, results.jsonl and runs.csv (not given: results/NAME-DATE-TIME)",
           .group = "Sweep"})
      .add(
          {.name = "resume",
           .kind = Kind::flag,
           .help =
               "go on with the sweep in --out; refuse when there is none (without it, a sweep of the same plan "
               "in --out is gone on with, too)",
           .group = "Sweep"})
      .add({.name = "only",
            .kind = Kind::text,
            .metavar = "KEY=VALUE[,...]",
            .help = "run only cells that have these values; of a key that is given more than once, any",
            .group = "Sweep"})
      .add({.name = "list",
            .kind = Kind::flag,
            .help = "print each run's command line in order and run nothing",
            .group = "Sweep"})
      .add({.name = "seed",
            .kind = Kind::integer,
            .default_text = "1",
            .help = "seed of the order, for a plan with 'order: shuffled'",
            .group = "Sweep"})
      .add({.name = "cell-timeout",
            .kind = Kind::seconds,
            .default_text = "1h",
            .min = 0.1,
            .max = 604800,
            .help = "stop a cell that takes longer; it counts as failed",
            .group = "Sweep"})
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "no progress line and no table; errors and what failed are still printed",
            .group = "Output"});
  c.examples = {
      {"doorbell sweep plans/nvme-modes.yaml --list", "Print the cells of a plan."},
      {"doorbell sweep plans/nvme-modes.yaml --out results/modes",
       "Run it; after Ctrl-C the same line goes on with what is missing."},
      {"doorbell sweep plans/xio-rdma-loopback.yaml --only provider=ionic,size=64KiB",
       "One cell of the matrix, beside the published figure."},
  };
  c.exits = {
      {0, "every run is complete and its data good"},
      {1, "usage or environment: a bad plan, a run that could not start, a file that cannot be written"},
      {2, "data errors; a run that crashed or took too long"},
      {77, "the hardware asked for is not here"},
      {130, "interrupted; the data until then is good"}};
  c.run = run_sweep;
  return c;
}

}  // namespace doorbell::cli
