// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "cli/commands.hpp"
#include "cli/offers.hpp"
#include "cli/report_page.hpp"
#include "cli/run_sweep.hpp"
#include "cli/shipped.hpp"
#include "options/suggest.hpp"
#include "report/file.hpp"
#include "report/layout.hpp"
#include "report/verdict.hpp"
#include "sweep/table.hpp"
#include "sweep/text_file.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kQuick = "quick";

// Both files say in their first bytes what made them.
constexpr const char* kTables = "tables.txt";
constexpr const char* kTablesBegin = "doorbell reproduce ";
constexpr const char* kPage = "report.html";
constexpr const char* kPageTitle = "Published tables, reproduced: ";
constexpr std::size_t kStart = 4096;

struct Found {
  fs::path file;
  std::string source;
  std::unique_ptr<PreparedSweep> sweep;
};

/// True for a plan's file, false for the name of a source or of a plan.
bool is_plan_file(const std::string& what) {
  std::error_code ignored;
  return what.ends_with(".yaml") || what.ends_with(".yml") || what.find('/') != std::string::npos ||
         fs::is_regular_file(what, ignored);
}

/// The one plan in a file, which need not have a source. `folder`: where it is looked for, too.
std::vector<Found> plan_in(const std::string& name, const fs::path& folder, const std::string& profile,
                           u64 seed, const Context& context) {
  std::error_code ignored;
  std::string file = find_plan(name);
  if (!fs::exists(file, ignored) && fs::exists(folder / name, ignored)) file = (folder / name).string();
  std::vector<Found> found(1);
  found[0].file = file;
  found[0].sweep = prepare_sweep({.plan = file, .profile = profile, .only = {}, .seed = seed}, context);
  found[0].source = found[0].sweep->plan.source.empty() ? "-" : found[0].sweep->plan.source;
  return found;
}

/// Removes, at its end, what a plan's runs have made among the temporary files: the files that cells give to
/// the kernel's path, as far as they were not there before.
class MadeFiles {
 public:
  explicit MadeFiles(const PreparedSweep& s) {
    std::error_code ignored;
    const std::string tmp = fs::weakly_canonical(fs::temp_directory_path(ignored), ignored).string() + "/";
    for (const u32 index : s.selected)
      for (const sweep::Setting& setting : s.cells[index].settings) {
        if (!setting.text.starts_with(kFile)) continue;
        const fs::path file = fs::weakly_canonical(setting.text.substr(kFile.size()), ignored);
        const bool temporary = file.string().starts_with(tmp) || file.string().starts_with("/tmp/");
        if (temporary && !fs::exists(fs::symlink_status(file, ignored))) files_.insert(file);
      }
  }
  ~MadeFiles() {
    std::error_code ignored;
    for (const fs::path& file : files_)
      if (fs::is_regular_file(fs::symlink_status(file, ignored))) fs::remove(file, ignored);
  }
  MadeFiles(const MadeFiles&) = delete;
  MadeFiles& operator=(const MadeFiles&) = delete;

 private:
  static constexpr std::string_view kFile = "file:";
  std::set<fs::path> files_;
};

/// The plans with a source, in the order of their sources and names; all are checked. `profile` empty: as
/// they are.
std::vector<Found> plans_of(const fs::path& folder, const std::string& profile, u64 seed,
                            const Context& context) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& e : fs::directory_iterator(folder))
    if (e.path().extension() == ".yaml") files.push_back(e.path());
  std::ranges::sort(files);
  std::vector<Found> found;
  for (const fs::path& file : files) {
    Found f{.file = file,
            .source = {},
            .sweep = prepare_sweep({.plan = file.string(), .profile = profile, .only = {}, .seed = seed},
                                   context)};
    f.source = f.sweep->plan.source;
    if (!f.source.empty()) found.push_back(std::move(f));
  }
  std::ranges::stable_sort(found, {}, &Found::source);
  return found;
}

std::vector<std::string> sources_of(const std::vector<Found>& plans) {
  std::vector<std::string> names;
  for (const Found& f : plans)
    if (names.empty() || names.back() != f.source) names.push_back(f.source);
  return names;
}

/// Leaves only the plans of the wanted source, or the one of that name. Throws Error if there is none.
void choose(std::vector<Found>* plans, const std::string& wanted) {
  if (wanted == "all") return;
  const std::vector<std::string> names = sources_of(*plans);
  if (std::ranges::find(names, wanted) == names.end()) {
    const auto is_wanted = [&](const Found& f) { return f.sweep->plan.name == wanted; };
    if (std::ranges::any_of(*plans, is_wanted)) {
      std::erase_if(*plans, [&](const Found& f) { return !is_wanted(f); });
      return;
    }
    std::vector<std::string> known = names;
    for (const Found& f : *plans) known.push_back(f.sweep->plan.name);
    const std::string near = options::nearest(wanted, known);
    throw Error(fmt::format("'{}'", wanted), "no plan reproduces that source, or has that name",
                near.empty() ? fmt::format("there are {} and all", fmt::join(names, ", "))
                             : fmt::format("did you mean '{}'?", near));
  }
  std::erase_if(*plans, [&](const Found& f) { return f.source != wanted; });
}

int list(const std::vector<Found>& plans) {
  fmt::print("{:<8}{:<28}{:>5}  {}\n", "source", "plan", "runs", "what");
  for (const Found& f : plans)
    fmt::print("{:<8}{:<28}{:>5}  {}\n", f.source, f.sweep->plan.name, f.sweep->turns.size(),
               report::printable(f.sweep->plan.title));
  return 0;
}

/// "10 ok, 2 skipped".
std::string counts(const std::vector<sweep::Record>& records) {
  std::map<std::string, std::size_t> by;
  for (const sweep::Record& r : records) ++by[sweep::verdict_of(r)];
  std::vector<std::string> parts;
  for (const auto& [verdict, n] : by) parts.push_back(fmt::format("{} {}", n, verdict));
  return parts.empty() ? "nothing ran" : fmt::format("{}", fmt::join(parts, ", "));
}

/// Adds the reasons for which cells were skipped, each once, without the command's name before it.
void add_reasons(const std::vector<sweep::Record>& records, std::vector<std::string>* reasons) {
  for (const sweep::Record& r : records) {
    if (r.exit_code != static_cast<int>(ExitCode::absent) || r.error.empty()) continue;
    std::string line = report::printable(r.error.substr(0, r.error.find('\n')));
    if (const std::size_t name = line.find(": "); line.starts_with("doorbell ") && name != std::string::npos)
      line = line.substr(name + 2);
    if (std::ranges::find(*reasons, line) == reasons->end()) reasons->push_back(std::move(line));
  }
}

/// Makes sure that nothing is replaced that another command, or somebody, has written.
void check_own(const std::string& out) {
  std::error_code ignored;
  const auto check = [&](const char* name, auto is_own) {
    const std::string file = fmt::format("{}/{}", out, name);
    const fs::file_status status = fs::symlink_status(file, ignored);
    if (status.type() == fs::file_type::not_found || status.type() == fs::file_type::none) return;
    if (!is_own(sweep::read_start(file, kStart)))
      throw Error("--out " + out, fmt::format("{} is there, and reproduce has not made it", name),
                  "move it away, or give another folder");
  };
  check(kTables, [](const std::string& start) { return start.starts_with(kTablesBegin); });
  check(kPage, [](const std::string& start) {
    return start.find(fmt::format("<title>{}", kPageTitle)) != std::string::npos;
  });
}

int run_reproduce(const Options& options, Context& context) {
  const fs::path folder = options.has("plans") ? fs::path(options.text("plans")) : shipped("plans");
  std::error_code ignored;
  if (folder.empty() || !fs::is_directory(folder, ignored))
    throw Error(options.has("plans") ? "--plans " + options.text("plans") : "the plans",
                "there is no such folder", "give the folder with doorbell's plans: --plans DIR");
  const std::string profile = options.text("profile") == "full" ? "" : options.text("profile");
  const std::string wanted = options.text("source");
  const u64 seed = options.integer("seed");
  std::vector<Found> plans = is_plan_file(wanted) ? plan_in(wanted, folder, profile, seed, context)
                                                  : plans_of(folder, profile, seed, context);
  if (!is_plan_file(wanted)) choose(&plans, wanted);
  if (options.flag("list")) return list(plans);

  const std::string out = options.text("out");
  check_own(out);
  SweepRun how;
  options.read_into(how);
  std::string tables =
      fmt::format("{}{}, profile {}\n\n", kTablesBegin, options.text("source"), options.text("profile"));
  std::vector<std::string> reasons;
  std::size_t done = 0;
  int code = 0;
  bool measured = false;
  if (!how.quiet) {
    std::size_t runs = 0;
    for (const Found& f : plans) runs += f.sweep->turns.size();
    fmt::print("{} plans, {} runs, profile {}, results in {}\n", plans.size(), runs, options.text("profile"),
               report::printable(out));
    std::fflush(stdout);
  }
  // Said before hours of measuring; at the end it is tried all the same.
  if (const std::string why = why_no_page(); !why.empty())
    fmt::print(stderr, "{} reproduce: there will be no report: {}\n", context.program, why);
  for (const Found& f : plans) {
    if (context.stop.requested()) break;
    const auto begin = std::chrono::steady_clock::now();
    how.folder = out + "/" + f.sweep->plan.name;
    how.title = fmt::format("{} ({} of {}): ", f.sweep->plan.name, done + 1, plans.size());
    const MadeFiles made(*f.sweep);
    const SweepOutcome o = run_sweep(*f.sweep, how, context);
    ++done;
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    // A plan of which nothing can run here is no failure as long as another one ran.
    if (o.code != static_cast<int>(ExitCode::absent)) code = report::worse_of(code, o.code);
    for (const sweep::Record& r : o.records) measured = measured || r.complete();
    add_reasons(o.records, &reasons);
    tables += fmt::format("{}\n{}\n\n", o.summary, o.verdict);
    if (!how.quiet) {
      fmt::print("  {:<28} {:>6.1f} s  {}\n", f.sweep->plan.name, took.count(), counts(o.records));
      std::fflush(stdout);
    }
    if (!o.failure.empty()) {
      fmt::print(stderr, "{} reproduce: {}\n", context.program, o.failure);
      break;
    }
  }
  if (context.stop.requested()) code = report::worse_of(code, sweep::kInterrupted);
  if (code == 0 && !measured) code = static_cast<int>(ExitCode::absent);
  if (!how.quiet && options.flag("details")) fmt::print("\n{}", tables);
  report::write_file(fmt::format("{}/{}", out, kTables), tables);
  const std::string page = fmt::format("{}/{}", out, kPage);
  const std::string why =
      measured ? make_page(out, page, kPageTitle + options.text("source")) : "nothing was measured";
  if (!how.quiet) {
    for (const std::string& r : reasons) fmt::print("skipped: {}\n", r);
    fmt::print("tables: {}/{}\n", report::printable(out), kTables);
    if (why.empty()) fmt::print("report: {}\n", report::printable(page));
  }
  if (!why.empty()) fmt::print(stderr, "{} reproduce: no report: {}\n", context.program, why);
  std::fflush(stdout);
  return code;
}

}  // namespace

Command reproduce_command() {
  Command c;
  c.name = "reproduce";
  c.summary = "run the plans of published tables and write one report";
  c.description = {
      "Four sources have published figures of what doorbell measures. For each of their tables there is a plan. This "
      "command runs the plans of a source, one after the other, and writes one report. Published figures stay in columns "
      "of their own, labelled 'published, other machine'; ours say whether a software model, an emulated device, the "
      "kernel or hardware was measured.",
      "A cell that this machine cannot run (it needs a GPU, a peer program, a right) is skipped, and its reason is printed. "
      "The same line again goes on with what is missing. A file below /tmp that a plan's cells make for the kernel's "
      "path is removed behind them.",
      "The profile 'quick' takes less than two minutes a plan on two cores; 'full' measures as long as the plans "
      "say.",
  };
  c.options.group("What")
      .add(
          {.name = "source",
           .metavar = "SOURCE|PLAN",
           .default_text = "all",
           .offers = reproduce_words,
           .help =
               "xio, daqiri, cxi, qdma, or all; --list shows their plans. Or one plan: its name in that list, or its "
               "file",
           .operand = true})
      .add({.name = "profile",
            .default_text = "full",
            .choices = {"quick", "full"},
            .help = "how long to measure"})
      .add({.name = "list", .kind = Kind::flag, .help = "print the sources and their plans, and run nothing"})
      .add({.name = "out",
            .kind = Kind::directory,
            .default_text = "results/reproduce",
            .help = "the folder: a sweep's folder for each plan, tables.txt, report.html"})
      .add({.name = "plans",
            .kind = Kind::directory,
            .help = "the folder with the plans (not given: those that come with doorbell)"})
      .add({.name = "seed",
            .kind = Kind::integer,
            .default_text = "1",
            .help = "seed of the order, for plans with 'order: shuffled'"})
      .add({.name = "cell-timeout",
            .kind = Kind::seconds,
            .default_text = "10m",
            .min = 0.1,
            .max = 604800,
            .help = "stop a cell that takes longer; it counts as failed",
            .into = &SweepRun::cell_timeout_s})
      .group("Output")
      .add({.name = "details",
            .kind = Kind::flag,
            .help = "print every table at the end (they are in tables.txt in any case)"})
      .add({.name = "quiet",
            .letter = 'q',
            .help = "no progress and no list of plans; errors are still printed",
            .into = &SweepRun::quiet});
  c.examples = {
      {"doorbell reproduce --list", "Which sources and tables there are."},
      {"doorbell reproduce cxi --profile quick --out results/cxi",
       "The examples of one source, in a minute."},
      {"doorbell reproduce plans/xio-nvme-smoke.yaml", "The table of one plan."},
      {"doorbell reproduce all", "Every published table; the same line again goes on after Ctrl-C."},
  };
  c.exits = {
      {0, "all that this machine can run is complete and its data good"},
      {1, "usage or environment: a bad plan, a run that could not start, a file that cannot be written"},
      {2, "data errors; a run that crashed or took too long"},
      {77, "nothing could be measured: what every cell needs is absent"},
      {130, "interrupted; the data until then is good"}};
  c.run = run_reproduce;
  return c;
}

}  // namespace doorbell::cli
