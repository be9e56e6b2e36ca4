// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The main job of every path on its model, a table, and a report to look at.
#include <doorbell/gpu.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "nvme/bench.hpp"
#include "report/csv.hpp"
#include "report/json.hpp"
#include "report/text.hpp"
#include "report/verdict.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

struct Step {
  std::string title;
  nvme::BenchOptions bench;
};

std::vector<Step> steps(bool gpu) {
  std::vector<Step> all;
  const auto add = [&](std::string title, auto change) {
    nvme::BenchOptions b;
    b.write_io = b.read_io = 100'000;
    change(b);
    all.push_back({std::move(title), b});
  };
  add("512 B blocks, four queues", [](auto& b) {
    b.num_queues = 4;
    b.batch = 16;
  });
  add("4 KiB blocks, random order, one command in flight", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 20'000;
    b.random = true;
    b.substeps = true;
  });
  add("1 MiB I/Os over chained PRP lists", [](auto& b) {
    b.controller = "model:lba=4096";
    b.write_io = b.read_io = 500;
    b.lbas_per_io = 256;
    b.batch = 4;
  });
  add("the queues alone (null media)", [](auto& b) {
    b.controller = "model:media=null";
    b.write_io = 0;
    b.read_io = 2'000'000;
    b.batch = 64;
    b.verify = false;
    b.less_timing = true;
  });
  if (gpu) {
    for (const u32 mode : {0u, 11u})
      add(fmt::format("GPU kernel, memory mode {}", mode), [&](auto& b) {
        b.initiator = Initiator::gpu;
        b.memory_mode = mode;
        b.num_queues = 4;
        b.batch = 64;
      });
  }
  return all;
}

/// Injects each kind of fault and compares what the initiator found with what the model did.
struct FaultCheck {
  model::Fault fault;
  u64 injected = 0;
  u64 found = 0;
  std::string found_as;
};

FaultCheck check_fault(model::Fault f, const nvme::BenchWatch& watch) {
  nvme::BenchOptions b;
  b.write_io = b.read_io = 5'000;
  b.batch = 8;
  b.timeout_s = 0.5;
  b.late_after_s = 0.1;
  b.faults.probability[static_cast<u32>(f)] = f == model::Fault::removal ? 0.0005 : 0.002;
  const nvme::BenchResult r = nvme::run_bench(b, watch);
  FaultCheck c{.fault = f, .injected = 0, .found = 0, .found_as = {}};
  c.injected = r.cell.extra["model"]["injected"][std::string(model::name(f))].get<u64>();
  const report::Verify& v = r.cell.verify;
  const auto found = [&](const char* name, u64 n) {
    c.found_as = name;
    c.found = n;
  };
  switch (f) {
    case model::Fault::drop:
      found("timeout", r.cell.errors.at("timeout"));
      break;
    case model::Fault::delay:
      found("late", r.cell.errors.at("late"));
      break;
    case model::Fault::error:
      found("completion error", r.cell.errors.at("completion"));
      break;
    case model::Fault::corrupt:
      found("corrupt", v.corrupt);
      break;
    case model::Fault::misplace:
      found("misplaced", v.misplaced);
      break;
    case model::Fault::stale:
      found("stale", v.stale);
      break;
    case model::Fault::duplicate:
      found("duplicated", v.duplicated);
      break;
    case model::Fault::removal:
      found("removal", r.cell.errors.at("removal"));
      break;
    default:
      found("legal: no error", r.failed ? 0 : c.injected);
  }
  return c;
}

std::string quoted(const std::string& s) {
  std::string q = "'";
  for (const char ch : s) {
    if (ch == '\'') q += "'\\''";
    else q += ch;
  }
  return q + "'";
}

/// The report's Python package, in the source tree or installed; empty when it is nowhere.
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

int run(const Options& options, Context& context) {
  const bool quiet = options.flag("quiet");
  Progress progress(context.stderr_tty && !quiet);
  report::Result result = new_result(context);
  const bool gpu = !gpu::enumerate().empty() && !gpu::code_objects().empty();
  std::string what;
  const nvme::BenchWatch watch{.stop = &context.stop, .progress = [&](double f, const std::string& s) {
                                 progress.update(f, what + ": " + s);
                               }};
  for (const Step& s : steps(gpu)) {
    if (context.stop.requested()) break;
    what = s.title;
    nvme::BenchResult r = nvme::run_bench(s.bench, watch);
    nlohmann::ordered_json titled = {{"title", s.title}};
    titled.update(r.cell.cell);
    r.cell.cell = std::move(titled);
    result.cells.push_back(std::move(r.cell));
    result.stop_reason = r.stop_reason;
    result.complete = r.stop_reason == "done";
    for (const std::string& w : r.warnings) result.warnings.push_back(s.title + ": " + w);
    progress.clear();
    if (!quiet) fmt::print("{}\n", report::to_text(result.cells.back(), context.stdout_tty));
  }
  bool all_found = true;
  if (!context.stop.requested()) {
    if (!quiet) fmt::print("Faults that the model injects, and what the initiator makes of them:\n");
    for (const std::string& name : model::fault_names()) {
      what = "fault " + name;
      const auto index = static_cast<u32>(&name - model::fault_names().data());
      const FaultCheck c = check_fault(static_cast<model::Fault>(index), watch);
      progress.clear();
      if (context.stop.requested()) break;
      all_found = all_found && c.found == c.injected;
      if (!quiet)
        fmt::print("  {:<10} injected {:>3}   found {:>3} as {}{}\n", name, c.injected, c.found, c.found_as,
                   c.found == c.injected ? "" : "   MISMATCH");
    }
  }
  if (!all_found) result.warnings.emplace_back("a fault check found another count than the model injected");
  result.exit_code = all_found ? report::exit_code_for(result) : 2;

  const fs::path folder = fs::path(options.text("output")) / folder_name();
  fs::create_directories(folder);
  report::write_json(result, folder / "result.json");
  report::write_csv(result, folder / "runs.csv");
  const bool reported = write_report(folder / "result.json", folder / "report.html");
  if (!quiet) {
    if (!gpu)
      fmt::print("\nNo GPU step: {}\n", gpu::code_objects().empty()
                                            ? "this build has no GPU kernels"
                                            : "no GPU is usable here (doorbell doctor)");
    fmt::print("\n{}\nresult  {}\n", report::verdict_for(result).text, (folder / "result.json").string());
    fmt::print("report  {}\n", reported ? (folder / "report.html").string()
                                        : "not written: python3 or the doorbell_report package is missing");
  }
  return result.exit_code;
}

}  // namespace

Command demo_command() {
  Command c;
  c.name = "demo";
  c.summary = "every path on its model: a table and a report";
  c.description = {
      "Runs the main job of each path on its software model, so that a machine without any of the hardware "
      "shows what doorbell does: NVMe commands posted by CPU threads (and by a GPU kernel where there is a "
      "GPU), carried out by a software controller, every block verified.",
      "Then injects each kind of fault into the model and compares the counts. Writes result.json, "
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
  c.run = run;
  return c;
}

}  // namespace doorbell::cli
