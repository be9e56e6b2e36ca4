// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_sweep.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "cli/parse.hpp"
#include "cli/path.hpp"
#include "cli/progress.hpp"
#include "cli/shipped.hpp"
#include "report/file.hpp"
#include "report/json.hpp"
#include "report/layout.hpp"
#include "report/tool.hpp"
#include "report/verdict.hpp"
#include "sweep/plan_json.hpp"
#include "sweep/run.hpp"
#include "sweep/table.hpp"
#include "sweep/text_file.hpp"
#include "system/open_file.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

/// Something that is absent on this machine is no error of a plan: its cells are skipped when they run.
void check_words(const Command& c, const Options& options) {
  try {
    if (c.check) c.check(options);
  } catch (const Error& e) {
    if (e.code() != ExitCode::absent) throw;
  }
}

}  // namespace

std::vector<sweep::Subject> subjects(const Context& context) {
  std::vector<sweep::Subject> found;
  for (const Command* const c : measuring_commands()) {
    const std::string title = context.program + " " + c->name;
    found.push_back({c->name, c->options,
                     [title, c](const std::vector<std::string>& words) {
                       Options options = parse(title, c->options, words);
                       check_words(*c, options);
                       return options;
                     },
                     c->listening});
  }
  return found;
}

namespace {

/// Makes sure that the sweep does not write to the files that it reads.
void check_inputs(const std::string& folder, const sweep::Plan& plan) {
  const std::vector<std::string> inputs = sweep::files_of(plan);
  std::vector<std::string> outputs = sweep::stale_in(folder);
  for (const char* name : sweep::kWritten) outputs.push_back(fmt::format("{}/{}", folder, name));
  for (const std::string& output : outputs)
    for (const std::string& input : inputs)
      if (same_file(input, output))
        throw Error("--out " + folder,
                    fmt::format("the sweep reads {} and would write it as {}", input, output),
                    "give another folder");
}

void check_folder(const std::string& folder, const std::string& text, bool resume) {
  const std::string title = "--out " + folder;
  switch (sweep::look(folder, text, title)) {
    case sweep::Found::same:
      return;
    case sweep::Found::nothing:
      if (resume) throw Error("--resume", fmt::format("{} holds no sweep", folder));
      return;
    case sweep::Found::another:
      throw Error(
          title,
          "it holds the results of another plan: its plan.yaml differs from this one (which also names the "
          "ranks, where the plan has pairs)",
          "give another folder, or the plan that the folder has");
    case sweep::Found::foreign:
      throw Error(title, "it is not empty and holds no sweep", "give a new or an empty folder");
  }
}

/// The records of earlier runs, checked against the plan.
std::vector<sweep::Record> earlier(const sweep::Plan& plan, const sweep::Folder& folder, std::size_t cells) {
  sweep::Records records = folder.read();
  if (records.torn)
    fmt::print(stderr, "{}: the last line is torn, its cell is run again\n",
               report::printable(folder.file("results.jsonl")));
  const nlohmann::ordered_json::json_pointer git("/tool/git");
  std::set<std::string> builds;
  std::map<std::pair<u32, u32>, std::size_t> lines;  // where the record of each cell and round is
  for (const sweep::Record& r : records.list) {
    const auto [first, fresh] = lines.emplace(std::pair(r.cell, r.round), lines.size() + 1);
    if (!fresh)
      throw Error(fmt::format("{}:{}", folder.file("results.jsonl"), lines.size() + 1),
                  fmt::format("cell {} of round {} is there twice, first in line {}",
                              sweep::shown_number(r.cell), r.round, first->second),
                  "take one of the two lines out");
    if (r.cell >= cells || r.round >= plan.rounds)
      throw Error(folder.file("results.jsonl"),
                  fmt::format("the plan has no cell {} of round {}", sweep::shown_number(r.cell), r.round));
    if (r.result.contains(git) && r.result.at(git).is_string())
      builds.insert(report::printable(r.result.at(git).get<std::string>()));
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

bool is_skipped(const sweep::Record& r) {
  return r.code() == static_cast<int>(ExitCode::absent);
}

std::string verdict(const std::vector<sweep::Record>& records, std::size_t wanted, int code, bool stopped) {
  const auto whole = std::ranges::count_if(records, [](const auto& r) { return r.complete(); });
  const std::string count = fmt::format("{} of {} runs complete", whole, wanted);
  if (code != 0 && code != static_cast<int>(ExitCode::absent) && code != sweep::kInterrupted)
    return fmt::format("FAILED: {}, exit code {}", count, code);
  if (stopped || code == sweep::kInterrupted)
    return fmt::format("INTERRUPTED: {}; the same command with --out goes on from here", count);
  if (code != 0) return fmt::format("SKIPPED: {}, what every cell needs is absent", count);
  const auto skipped = std::ranges::count_if(records, is_skipped);
  return fmt::format(
      "OK: {}{}", count,
      skipped == 0 ? "" : fmt::format(", {} skipped, because what they need is absent", skipped));
}

}  // namespace

std::string find_plan(const std::string& name) {
  std::error_code ignored;
  if (fs::exists(name, ignored) || !name.starts_with("plans/")) return name;
  const fs::path there = shipped(name);
  return there.empty() ? name : there.string();
}

namespace {

/// Makes the cells those of each pair of ranks.
void pair_up(sweep::Team* team, PreparedSweep* s) {
  const std::vector<std::string> hosts = team == nullptr ? std::vector<std::string>{} : team->hosts();
  if (!s->plan.pairs) {
    if (hosts.size() > 1)
      throw Error(s->plan.file,
                  fmt::format("{} ranks have been started, and the plan has no key 'pairs'", hosts.size()),
                  "start one, or add 'pairs: {}' for runs between two hosts");
    return;
  }
  if (hosts.size() == 1)
    throw Error(s->plan.file, "its cells are runs between two ranks, and there is one rank", "mpirun -np 2");
  s->cells = sweep::expand_pairs(s->plan, std::move(s->cells), hosts);
  if (hosts.empty()) return;
  team->choose_addresses(s->plan.pairs->network);
  s->team = team;
  // Results between other hosts are those of another sweep.
  s->text += fmt::format("\n# ranks: {}\n", fmt::join(hosts, " "));
}

}  // namespace

std::unique_ptr<PreparedSweep> prepare_sweep(const SweepRequest& request, const Context& context) {
  auto s = std::make_unique<PreparedSweep>();
  s->text = sweep::read_text(request.plan, sweep::kMaxPlan);
  s->commands = subjects(context);
  s->plan = sweep::parse_plan(s->text, request.plan, s->commands);
  if (!request.profile.empty()) {
    sweep::apply_profile(&s->plan, request.profile, "--profile");
    // A folder has one plan, and a plan's profiles are plans of their own.
    s->text += fmt::format("\n# profile: {}\n", request.profile);
  }
  s->cells = sweep::expand(s->plan);
  pair_up(request.team, s.get());
  s->references = sweep::load_references(s->plan, s->cells);
  s->selected = sweep::select(s->plan, s->cells, request.only, "--only");
  if (!s->plan.only.empty()) {
    const std::vector<u32> ours = sweep::select(s->plan, s->cells, s->plan.only);
    std::erase_if(s->selected, [&](u32 c) { return std::ranges::find(ours, c) == ours.end(); });
    if (s->selected.empty())
      throw Error(fmt::format("--only {}", request.only),
                  fmt::format("none of the cells of profile {} fits", request.profile), "--list prints them");
  }
  s->turns = sweep::turns(s->plan, s->selected, request.seed);
  if (s->plan.pairs && s->plan.pairs->disjoint) sweep::join_groups(s->cells, &s->turns);
  return s;
}

SweepOutcome run_sweep(const PreparedSweep& s, const SweepRun& how, Context& context) {
  const sweep::Plan& plan = s.plan;
  const std::vector<sweep::Cell>& cells = s.cells;
  const std::string& path = how.folder;
  if (plan.pairs && s.team == nullptr)
    throw Error(plan.file,
                "its cells are runs between two hosts, and no MPI launcher has started this process",
                "mpirun -np N doorbell sweep PLAN; --list needs none");
  check_folder(path, s.text, how.resume);
  check_inputs(path, plan);
  sweep::Folder folder(path, s.text, "--out " + path);
  std::vector<sweep::Record> records = earlier(plan, folder, cells.size());
  const std::vector<sweep::Turn> todo = still_to_run(s.turns, &records);
  folder.keep(records);
  report::write_file(folder.file(sweep::kWritten[2]), report::to_string(sweep::to_json(plan, s.references)));
  if (!how.quiet && todo.size() < s.turns.size())
    fmt::print(stderr, "{}: {} of {} runs are there already\n", report::printable(path),
               s.turns.size() - todo.size(), s.turns.size());

  Progress progress(context.stderr_tty && !how.quiet);
  const sweep::RunLimits limits = {.cell_timeout_s = how.cell_timeout_s, .team = s.team};
  const auto show = [&](std::size_t done, const sweep::Turn& turn, double elapsed_s) {
    std::string what = fmt::format("{}{} of {}, {:.0f} s: cell {}", how.title, done + 1, todo.size(),
                                   elapsed_s, sweep::shown_number(turn.cell));
    if (plan.rounds > 1) what += fmt::format(" round {}", turn.round);
    progress.update(static_cast<double>(done) / static_cast<double>(todo.size()),
                    what + " " + sweep::label_of(plan, cells[turn.cell]));
  };
  SweepOutcome o;
  try {
    sweep::run(plan, cells, todo, folder, limits, {&context.stop, show}, &records);
  } catch (const Error& e) {
    // The runs that have been measured so far are printed and count.
    o.failure = report::printable(e.what());
    if (!e.hint().empty()) o.failure += "\nhint: " + report::printable(e.hint());
  }
  progress.clear();

  std::erase_if(records,
                [&](const auto& r) { return std::ranges::find(s.selected, r.cell) == s.selected.end(); });
  for (const sweep::Record& r : records) o.code = report::worse_of(o.code, r.code());
  // Cells that this machine cannot run are skipped; that is no failure as long as something ran.
  const auto ran = [](const sweep::Record& r) { return !is_skipped(r) && r.complete(); };
  if (o.code == static_cast<int>(ExitCode::absent) && std::ranges::any_of(records, ran)) o.code = 0;
  if (!o.failure.empty()) o.code = report::worse_of(o.code, static_cast<int>(ExitCode::usage));
  if (context.stop.requested()) o.code = report::worse_of(o.code, sweep::kInterrupted);
  o.verdict = verdict(records, s.turns.size(), o.code, context.stop.requested());
  o.summary = sweep::summary(plan, cells, s.selected, records, s.references, how.bits);
  o.records = std::move(records);
  return o;
}

}  // namespace doorbell::cli
