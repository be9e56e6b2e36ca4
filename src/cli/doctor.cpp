// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <sys/resource.h>

#include "cli/commands.hpp"
#include "cli/doctor_checks.hpp"
#include "cli/texts.hpp"
#include "report/tool.hpp"

namespace doorbell::cli {
namespace {

#if defined(__OPTIMIZE__)
constexpr bool kOptimized = true;
#else
constexpr bool kOptimized = false;
#endif

std::string_view level_name(Level level) {
  return level == Level::ok ? "OK" : level == Level::warn ? "WARN" : "FIX";
}

Machine this_machine() {
  Machine m;
  rlimit limit = {};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    m.locked_limit_bytes = limit.rlim_cur;
  }
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    m.cpus = static_cast<unsigned>(std::max(1, CPU_COUNT(&allowed)));
  }
  for (const gpu::RuntimeStatus& status : gpu::runtimes()) {
    m.runtimes.push_back({std::string(gpu::name(status.runtime)), status.usable, status.detail});
  }
  m.optimized = kOptimized;
  m.sanitizer = report::tool().sanitizer;
  return m;
}

int run_doctor(const Options& options, Context&) {
  const std::vector<Check> checks = all_checks(this_machine());
  const auto count = [&](Level level) {
    return std::count_if(checks.begin(), checks.end(), [&](const Check& c) { return c.level == level; });
  };
  if (options.flag("json")) {
    auto list = nlohmann::ordered_json::array();
    for (const Check& c : checks) {
      list.push_back({{"check", c.name},
                      {"level", level_name(c.level)},
                      {"finding", c.finding},
                      {"fix", c.fix.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(c.fix)}});
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"checks", list}}.dump(
                           2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    constexpr std::size_t kColumn = 6 + 24;
    for (const Check& c : checks) {
      fmt::print("{:<6}{:<24}{}\n", level_name(c.level), c.name,
                 wrap(c.finding, kHelpWidth - kColumn, kColumn));
      // Never wrapped, because the user copies it.
      if (!c.fix.empty()) fmt::print("      $ {}\n", c.fix);
    }
    fmt::print("\n{} ok, {} to know about (WARN), {} to fix (FIX)\n", count(Level::ok), count(Level::warn),
               count(Level::fix));
  }
  return options.flag("strict") && count(Level::fix) > 0 ? 1 : 0;
}

}  // namespace

Command doctor_command() {
  Command command;
  command.name = "doctor";
  command.summary = "what this machine lacks for good figures, and how to fix it";
  command.description = {
      "Each line is OK, WARN (something cannot be used here, or figures may suffer) or FIX (something does "
      "not "
      "work, or figures are wrong, until it is changed), with the one command that helps. Nothing is "
      "changed."};
  command.options.group("Output")
      .add({.name = "strict", .kind = Kind::flag, .help = "exit with 1 when a line says FIX"})
      .add({.name = "json", .kind = Kind::flag, .help = "print JSON"});
  command.examples = {{"doorbell doctor", "Look before you measure."},
                      {"doorbell doctor --strict", "Stop a script on a machine that is not ready."}};
  command.run = run_doctor;
  command.group = "This machine";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
