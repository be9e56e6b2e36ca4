// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbell::run(): the commands that measure, called by other programs.
#include <doorbell/error.hpp>
#include <doorbell/run.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <mutex>

#include "cli/command.hpp"
#include "cli/parse.hpp"
#include "cli/path.hpp"
#include "measure/stop.hpp"
#include "options/setting.hpp"
#include "report/json.hpp"
#include "report/verdict.hpp"
#include "system/open_files.hpp"

namespace doorbell {
namespace {

using cli::Command;

const Command& command_of(std::string path) {
  std::ranges::replace(path, ' ', '-');
  std::vector<std::string> names;
  for (const Command* const c : cli::measuring_commands()) {
    if (c->name == path) return *c;
    names.push_back(c->name);
  }
  throw Error("run", fmt::format("'{}' is not one of {}", path, fmt::join(names, ", ")));
}

/// True and false, as other languages have them, of an option that is on or off.
std::string switched(const options::Option& o, const std::string& value) {
  const bool has_both = std::ranges::count(o.choices, "on") != 0 && std::ranges::count(o.choices, "off") != 0;
  if (has_both && value == "true") return "on";
  return has_both && value == "false" ? "off" : value;
}

/// As they are typed.
std::vector<std::string> words_of(const Command& command, const OptionValues& values) {
  std::vector<std::string> words;
  for (const auto& [given, value] : values) {
    std::string name = given;
    std::ranges::replace(name, '_', '-');
    const options::Option* const o = command.options.find(name);
    if (o == nullptr) {
      words.push_back(fmt::format("--{}={}", name, value));
    } else if (o->kind != options::Kind::flag) {
      words.push_back(fmt::format("--{}={}", name, switched(*o, value)));
    } else if (value.empty() || value == "true") {
      words.push_back("--" + name);
    } else if (value != "false") {
      throw Error("--" + name, fmt::format("'{}' is neither true nor false", value));
    }
  }
  return words;
}

RunFigures figures_of(const report::Metrics& m) {
  const report::Latency& l = m.latency_ns;
  return {.operations = m.ops,
          .bytes = m.bytes,
          .elapsed_s = m.elapsed_s,
          .operations_per_s = m.ops_per_s,
          .bytes_per_s = m.bytes_per_s,
          .min_ns = l.min,
          .mean_ns = l.mean,
          .p50_ns = l.p50,
          .p90_ns = l.p90,
          .p99_ns = l.p99,
          .p99_9_ns = l.p99_9,
          .max_ns = l.max};
}

RunChecks checks_of(const report::Verify& v) {
  return {.mode = v.mode,
          .checked = v.checked,
          .checked_bytes = v.checked_bytes,
          .unverifiable = v.unverifiable,
          .corrupt = v.corrupt,
          .misplaced = v.misplaced,
          .stale = v.stale,
          .duplicated = v.duplicated,
          .missing = v.missing};
}

RunCell cell_of(const report::Cell& c) {
  RunCell out = {.path = c.path,
                 .operation = c.operation,
                 .initiator = c.initiator_kind,
                 .device_kind = c.device_kind,
                 .device = c.device_name,
                 .figures = figures_of(c.metrics),
                 .checks = checks_of(c.verify),
                 .errors = c.errors};
  for (const auto& [key, value] : c.cell.items())
    out.parameters.emplace(key, value.is_string() ? value.get<std::string>() : value.dump());
  for (const auto& [name, metrics] : c.parts) out.parts.emplace_back(name, figures_of(metrics));
  for (const report::Repeat& r : c.repeats) out.repeats_operations_per_s.push_back(r.ops_per_s);
  return out;
}

RunResult result_of(const report::Result& r) {
  RunResult out = {.exit_code = r.exit_code,
                   .verdict = report::verdict_for(r).text,
                   .complete = r.complete(),
                   .stop_reason = report::name(r.stop_reason),
                   .warnings = r.warnings,
                   .json = report::to_string(report::to_json(r))};
  for (const report::Cell& c : r.cells) out.cells.push_back(cell_of(c));
  return out;
}

/// For the time of a run, messages of the library name options.
class OptionNames {
 public:
  OptionNames() : before_(Setting::named_by_options()) { Setting::name_by_options(); }
  ~OptionNames() { Setting::name_by_options(before_); }
  OptionNames(const OptionNames&) = delete;
  OptionNames& operator=(const OptionNames&) = delete;

 private:
  bool before_;
};

}  // namespace

RunResult run(const std::string& path, const OptionValues& options, const RunHooks& hooks) {
  static std::mutex one;
  const std::unique_lock only(one, std::try_to_lock);
  if (!only) throw Error("run", "another run is under way in this process");
  allow_all_open_files();
  const OptionNames names;
  const Command& command = command_of(path);
  const std::vector<std::string> words = words_of(command, options);
  const cli::Options parsed = cli::parse("doorbell " + command.name, command.options, words);
  if (parsed.has("versus")) throw Error("--versus", "it belongs to the command line", "make two runs");

  RunResult result = {.stop_reason = report::name(StopReason::done)};
  const cli::Host host = {.take = [&](const report::Result& r) { result = result_of(r); },
                          .progress = hooks.progress};
  measure::StopFlag stop;
  stop.install_without_signals();
  const std::stop_callback ask(hooks.stop, [&] { stop.request(SIGINT); });
  const std::vector<Command> none;  // the commands that make texts of all are not among these
  std::vector<std::string> argv = {"doorbell", command.name};
  argv.insert(argv.end(), words.begin(), words.end());
  cli::Context context{
      .program = "doorbell", .argv = std::move(argv), .stop = stop, .commands = none, .host = &host};
  result.exit_code = command.run(parsed, context);
  return result;
}

}  // namespace doorbell
