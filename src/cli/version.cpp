// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "report/tool.hpp"

namespace doorbell::cli {
namespace {

int run_version(const Options& options, Context&) {
  const report::Tool& tool = report::tool();
  if (options.flag("json")) {
    const nlohmann::ordered_json json = {{"version", tool.version},
                                         {"git", tool.git},
                                         {"build", tool.build},
                                         {"compiler", tool.compiler},
                                         {"sanitizer", tool.sanitizer}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("doorbell {} ({}, {} build, {}{}{})\n", tool.version, tool.git, tool.build, tool.compiler,
             tool.sanitizer.empty() ? "" : ", sanitizer ", tool.sanitizer);
  return 0;
}

}  // namespace

Command version_command() {
  Command command;
  command.name = "version";
  command.summary = "what this build is";
  command.options.group("Output").add({.name = "json", .kind = Kind::flag, .help = "print JSON"});
  command.run = run_version;
  command.group = "This machine";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
