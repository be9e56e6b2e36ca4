// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Runs the main job of every path on its model, and every fault check; prints two tables and makes a report.
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/fault_table.hpp"
#include "cli/output.hpp"
#include "cli/path.hpp"
#include "cli/progress.hpp"
#include "cli/report_page.hpp"
#include "gpu/code_objects.hpp"
#include "options/enumeration.hpp"
#include "report/cell_table.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

std::string folder_name() {
  std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text.data(), text.size(), "demo-%Y%m%d-%H%M%S", &utc);
  return text.data();
}

/// Runs the demo's steps and checks, one piece of work each for the progress line.
class Demo {
 public:
  Demo(Context& context, bool quiet, bool gpu)
      : context_(context), progress_(context.stderr_tty && !quiet), result_(new_result(context)) {
    for (const PathDescription& path : paths()) steps_.push_back(path.demo_steps(gpu));
    for (const auto& steps : steps_) pieces_ += steps.size();
    pieces_ += paths().size() * model::kFaultKinds;
  }

  void run() {
    for (const auto& steps : steps_)
      for (const DemoStep& step : steps) measure(step);
    for (const PathDescription& path : paths()) check_faults(path);
    progress_.clear();
    result_.faults = findings(faults_);
    const bool all_found = std::ranges::all_of(faults_, [](const FaultRow& row) {
      return std::ranges::all_of(row.checks, [](const auto& c) { return !c || matches(*c); });
    });
    if (!all_found) {
      result_.warnings.emplace_back("a fault check found another count than the model injected");
      result_.exit_code = static_cast<int>(ExitCode::data);
    }
    if (context_.stop.requested()) result_.stop_reason = StopReason::requested;
    result_.exit_code = report::exit_code_for(result_);
  }

  [[nodiscard]] report::Result& result() { return result_; }
  [[nodiscard]] const std::vector<FaultRow>& faults() const { return faults_; }

 private:
  measure::RunWatch watch(const std::string& what) {
    return {.stop = &context_.stop,
            .progress =
                [this, what](double fraction, const std::string& phase) {
                  // A piece's own phases follow each other, so only whole pieces count.
                  (void)fraction;
                  progress_.update(static_cast<double>(done_) / static_cast<double>(pieces_),
                                   fmt::format("{}: {}", what, phase), live_.operations());
                },
            .live = &live_};
  }

  void measure(const DemoStep& step) {
    if (context_.stop.requested()) return;
    measure::BenchResult r = step.run(watch(step.title));
    ++done_;
    result_.stop_reason = std::max(result_.stop_reason, r.stop_reason);
    for (const std::string& w : r.warnings) result_.warnings.push_back(step.title + ": " + w);
    for (report::Cell& cell : r.cells) {
      nlohmann::ordered_json titled = {{"title", step.title}};
      titled.update(cell.cell);
      cell.cell = std::move(titled);
      result_.cells.push_back(std::move(cell));
    }
  }

  /// Injects each kind of fault into a path's model.
  void check_faults(const PathDescription& path) {
    FaultRow row{.path = path.name(), .title = path.title, .checks = {}};
    for (u32 kind = 0; kind < model::kFaultKinds && !context_.stop.requested(); ++kind) {
      const auto fault = static_cast<model::Fault>(kind);
      const FaultCheck c = check_fault(path, fault);
      ++done_;
      if (!context_.stop.requested()) row.checks.emplace_back(c);
    }
    faults_.push_back(std::move(row));
  }

  /// A busy machine makes operations late that nothing was injected into: what is found then is looked for
  /// again with longer times.
  FaultCheck check_fault(const PathDescription& path, model::Fault fault) {
    const std::string what = fmt::format("{} fault {}", path.title, model::name(fault));
    FaultCheck c;
    for (const double times : {1.0, 4.0, 16.0}) {
      c = path.check_fault(fault, times, watch(what));
      if (matches(c) || context_.stop.requested()) break;
      result_.warnings.push_back(
          fmt::format("{}: {} injected, {} found with deadlines {:.0f} times as long as usual", what,
                      c.injected, c.found, times));
    }
    return c;
  }

  Context& context_;
  Progress progress_;
  measure::LiveBoard live_;
  report::Result result_;
  std::vector<std::vector<DemoStep>> steps_;
  std::vector<FaultRow> faults_;
  std::size_t pieces_ = 0, done_ = 0;
};

struct Files {
  fs::path json, html;
  std::string no_report;  ///< why there is none, or ""
};

Files write_files(const Options& options, const report::Result& result) {
  const fs::path folder = fs::path(options.text("output")) / folder_name();
  fs::create_directories(folder);
  Files files{.json = folder / "result.json", .html = folder / "report.html", .no_report = {}};
  report::write_json(result, files.json);
  report::write_csv(result, folder / "runs.csv");
  files.no_report = make_page(files.json, files.html, "doorbell demo");
  return files;
}

void print(Demo& demo, bool details, bool colour, bool gpu) {
  const report::Result& result = demo.result();
  if (details)
    for (const report::Cell& cell : result.cells) fmt::print("{}\n", report::to_text(cell, colour));
  else {
    report::Result shown = result;
    // Counts that a busy machine adds (--details has them) are no reason to leave one screen.
    if (shown.exit_code == 0) {
      for (report::Cell& cell : shown.cells) cell.extra = {};
    }
    fmt::print("{}\n", report::cell_table(shown, colour));
  }
  fmt::print("{}\n", details ? fault_lines(demo.faults()) : fault_table(demo.faults()));
  if (!gpu)
    fmt::print("no GPU step: {}\n", gpu::code_objects().empty()
                                        ? "this build has no GPU kernels"
                                        : "GPU 0 is not usable here, or runs no kernels (doorbell doctor)");
  fmt::print("{}", report::closing_lines(result, colour));
}

void print_next(const Files& files, const std::string& program) {
  if (files.no_report.empty()) fmt::print("report  {} (and result.json, runs.csv)\n", files.html.string());
  else fmt::print("result  {}\nreport  not written: {}\n", files.json.string(), files.no_report);
  const auto next = [&](const char* label, const std::string& command, const char* what) {
    fmt::print("{:<8}{:<36} {}\n", label, program + " " + command, what);
  };
  std::vector<std::string> names;
  for (const PathDescription& path : paths()) names.push_back(path.name());
  next("next", "help " + names.front(),
       fmt::format("the options of one path ({}), with examples", options::enumeration(names, "or")).c_str());
  next("", "demo --details", "all figures of each run, and what each fault is found as");
  next("", "help reproduce", "whole matrices, beside published figures");
}

int run_demo(const Options& options, Context& context) {
  const bool quiet = options.flag("quiet"), details = options.flag("details");
  const std::vector<gpu::Info> gpus = gpu::enumerate();
  const bool gpu = !gpus.empty() && gpu::has_kernels(gpus.front().runtime);
  std::error_code error;
  fs::create_directories(options.text("output"), error);
  if (error) throw Error("--output " + options.text("output"), error.message(), "name a folder");
  Demo demo(context, quiet, gpu);
  demo.run();
  const report::Result& result = demo.result();
  if (!quiet) print(demo, details, context.colour, gpu);
  else if (result.exit_code != 0) fmt::print(stderr, "{}", report::failure_text(result));
  try {
    const Files files = write_files(options, result);
    if (!quiet) print_next(files, context.argv.empty() ? context.program : context.argv[0]);
  } catch (const Error& e) {
    return report::worse_of(result.exit_code, print_error("doorbell demo: ", e));
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
      "Then injects each kind of fault into each model and compares the counts; a table has them as found/injected. "
      "Writes result.json, "
      "runs.csv and report.html into a new folder.",
  };
  c.options.group("Output")
      .add({.name = "output",
            .kind = Kind::directory,
            .metavar = "DIR",
            .default_text = "results",
            .help = "where the folder demo-DATE-TIME is made"})
      .add({.name = "details",
            .kind = Kind::flag,
            .help = "print all figures of each run, and as what each fault is counted"})
      .add({.name = "quiet", .letter = 'q', .kind = Kind::flag, .help = "write the files, print nothing"});
  c.examples = {{"doorbell demo", "Run it all; takes under a minute."},
                {"doorbell demo --output /tmp/doorbell", "Keep the results elsewhere."}};
  c.run = run_demo;
  return c;
}

}  // namespace doorbell::cli
