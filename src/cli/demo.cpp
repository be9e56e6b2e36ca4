// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs the main job of every path on its model; prints a table and makes a report.
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/path.hpp"
#include "cli/progress.hpp"
#include "options/enumeration.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& s) {
  std::string q = "'";
  for (const char ch : s) {
    if (ch == '\'') q += "'\\''";
    else q += ch;
  }
  return q + "'";
}

/// The report's Python package, in the source tree or installed; empty if there is none.
fs::path report_package() {
  std::error_code ignored;
  const fs::path exe = fs::read_symlink("/proc/self/exe", ignored);
  for (const char* at : {"../../python", "../share/doorbell/python", "../lib/doorbell/python"}) {
    const fs::path p = exe.parent_path() / at;
    if (fs::exists(p / "doorbell_report" / "__main__.py", ignored)) return fs::canonical(p, ignored);
  }
  return {};
}

bool write_report(const fs::path& json, const fs::path& html) {
  const fs::path package = report_package();
  if (package.empty()) return false;
  const std::string command =
      fmt::format("PYTHONPATH={} PATH=/usr/bin:\"$PATH\" python3 -m doorbell_report {} -o {} >/dev/null",
                  quoted(package.string()), quoted(json.string()), quoted(html.string()));
  // Every part that is not a literal is quoted.
  return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c)
}

std::string folder_name() {
  std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text.data(), text.size(), "demo-%Y%m%d-%H%M%S", &utc);
  return text.data();
}

/// Receives a demo's steps and checks as they end.
struct Show {
  report::Result& result;
  Context& context;
  Progress& progress;
  bool quiet;
  std::string what;

  measure::RunWatch watch() {
    return {.stop = &context.stop,
            .progress = [this](double f, const std::string& s) { progress.update(f, what + ": " + s); }};
  }
};

void run_steps(const std::vector<DemoStep>& steps, Show& show) {
  for (const DemoStep& s : steps) {
    if (show.context.stop.requested()) return;
    show.what = s.title;
    measure::BenchResult r = s.run(show.watch());
    show.progress.clear();
    show.result.stop_reason = r.stop_reason;
    show.result.complete = r.stop_reason == "done";
    for (const std::string& w : r.warnings) show.result.warnings.push_back(s.title + ": " + w);
    for (report::Cell& cell : r.cells) {
      nlohmann::ordered_json titled = {{"title", s.title}};
      titled.update(cell.cell);
      cell.cell = std::move(titled);
      show.result.cells.push_back(std::move(cell));
      if (!show.quiet) fmt::print("{}\n", report::to_text(show.result.cells.back(), show.context.colour));
    }
  }
}

/// Injects each kind of fault; false if the initiator's count differs from the model's.
bool check_faults(const PathDescription& path, Show& show) {
  bool all_found = true;
  if (!show.quiet && !show.context.stop.requested())
    fmt::print("Faults that the {} model injects, and what the initiator makes of them:\n", path.title);
  for (u32 kind = 0; kind < model::kFaultKinds && !show.context.stop.requested(); ++kind) {
    const auto fault = static_cast<model::Fault>(kind);
    show.what = fmt::format("{} fault {}", path.title, model::name(fault));
    const FaultCheck c = path.check_fault(fault, show.watch());
    show.progress.clear();
    if (show.context.stop.requested()) break;
    all_found = all_found && c.found == c.injected;
    if (!show.quiet)
      fmt::print("  {:<10} injected {:>3}   found {:>3} as {}{}\n", model::name(fault), c.injected, c.found,
                 c.found_as, c.found == c.injected ? "" : "   MISMATCH");
  }
  return all_found;
}

void write_files(const Options& options, const report::Result& result, bool quiet, bool gpu) {
  const fs::path folder = fs::path(options.text("output")) / folder_name();
  fs::create_directories(folder);
  report::write_json(result, folder / "result.json");
  report::write_csv(result, folder / "runs.csv");
  const bool reported = write_report(folder / "result.json", folder / "report.html");
  if (quiet) return;
  if (!gpu)
    fmt::print("\nNo GPU step: {}\n", gpu::code_objects().empty()
                                          ? "this build has no GPU kernels"
                                          : "no GPU is usable here (doorbell doctor)");
  fmt::print("\n{}\nresult  {}\n", report::verdict_for(result).text, (folder / "result.json").string());
  fmt::print("report  {}\n", reported ? (folder / "report.html").string()
                                      : "not written: python3 or the doorbell_report package is missing");
}

int run_demo(const Options& options, Context& context) {
  const bool quiet = options.flag("quiet");
  Progress progress(context.stderr_tty && !quiet);
  report::Result result = new_result(context);
  const bool gpu = !gpu::enumerate().empty() && !gpu::code_objects().empty();
  Show show{result, context, progress, quiet, {}};
  for (const PathDescription& path : paths()) run_steps(path.demo_steps(gpu), show);
  bool all_found = true;
  for (const PathDescription& path : paths()) all_found = check_faults(path, show) && all_found;
  if (!all_found) result.warnings.emplace_back("a fault check found another count than the model injected");
  if (!all_found) result.exit_code = static_cast<int>(ExitCode::data);
  if (context.stop.requested()) {
    result.stop_reason = "signal";
    result.complete = false;
  }
  result.exit_code = report::exit_code_for(result);
  if (quiet && result.exit_code != 0) fmt::print(stderr, "{}", report::failure_text(result));
  try {
    write_files(options, result, quiet, gpu);
  } catch (const Error& e) {
    return report::worse_of(result.exit_code, complain("doorbell demo: ", e));
  }
  return result.exit_code;
}

/// "NVMe commands, RDMA operations and Cassini puts".
std::string work_of_paths() {
  std::vector<std::string> work;
  for (const PathDescription& path : paths()) work.push_back(path.work);
  return options::enumeration(work, "and");
}

}  // namespace

Command demo_command() {
  Command c;
  c.name = "demo";
  c.summary = "every path on its model: a table and a report";
  c.description = {
      fmt::format(
          "Runs the main job of each path on its software model, so that a machine without any of the hardware "
          "shows what doorbell does: {} posted by CPU threads (and by a GPU kernel where there is a GPU), carried out "
          "by software devices, all data verified.",
          work_of_paths()),
      "Then injects each kind of fault into each model and compares the counts. Writes result.json, "
      "runs.csv and report.html into a new folder.",
  };
  c.options
      .add({.name = "output",
            .kind = Kind::directory,
            .metavar = "DIR",
            .default_text = "results",
            .help = "where the folder demo-DATE-TIME is made",
            .group = "Output"})
      .add({.name = "quiet",
            .letter = 'q',
            .kind = Kind::flag,
            .help = "write the files, print nothing",
            .group = "Output"});
  c.examples = {{"doorbell demo", "Run it all; takes under a minute."},
                {"doorbell demo --output /tmp/doorbell", "Keep the results elsewhere."}};
  c.run = run_demo;
  return c;
}

}  // namespace doorbell::cli
