// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/path.hpp"
#include "cli/texts.hpp"

namespace doorbell::cli {
namespace {

/// The code objects for one runtime in this build.
BackendState kernels_for(gpu::Runtime runtime) {
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (const gpu::CodeObject& object : gpu::code_objects()) {
    if (object.runtime != runtime) continue;
    names.push_back(object.name);
    bytes += object.image.size();
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string name = fmt::format("{}-kernels", gpu::name(runtime));
  if (names.empty()) {
    return {name,
            {false, fmt::format("left out of this build (no {} when it was configured, or DOORBELL_GPU=OFF)",
                                runtime == gpu::Runtime::cuda ? "nvcc" : "hipcc")}};
  }
  return {name, {true, fmt::format("{} ({} KiB)", fmt::join(names, ", "), (bytes + 1023) / 1024)}};
}

/// The states of what runs GPU initiators and holds data, which is the same for all paths.
std::vector<BackendState> gpu_states() {
  std::vector<BackendState> states;
  for (const gpu::RuntimeStatus& status : gpu::runtimes()) {
    states.push_back({std::string(gpu::name(status.runtime)), {status.usable, status.detail}});
    if (status.runtime != gpu::Runtime::level_zero) states.push_back(kernels_for(status.runtime));
  }
  return states;
}

struct Row {
  std::string path;
  BackendState backend;
};

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto add = [&all](const std::string& path, const std::vector<BackendState>& states) {
    for (const BackendState& state : states) all.push_back({path, state});
  };
  for (const PathDescription& path : paths()) add(path.name(), path.backends());
  add("gpu", gpu_states());
  return all;
}

int run_backends(const Options& options, Context&) {
  const std::vector<Row> all = rows();
  if (options.flag("json")) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& [path, b] : all) {
      list.push_back(
          {{"path", path}, {"backend", b.name}, {"usable", b.status.usable}, {"detail", b.status.detail}});
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"backends", list}}.dump(
                           2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{:<7} {:<13} {:<7} {}\n", "path", "back end", "usable", "detail");
  for (const auto& [path, b] : all) {
    constexpr std::size_t kColumn = 8 + 14 + 8;
    fmt::print("{:<7} {:<13} {:<7} {}\n", path, b.name, b.status.usable ? "yes" : "no",
               wrap(b.status.detail, kHelpWidth - kColumn, kColumn));
  }
  return 0;
}

}  // namespace

Command backends_command() {
  Command command;
  command.name = "backends";
  command.summary = "each path's back ends: usable, or why not";
  command.description = {
      "A back end is one way to reach a device: a software model, a kernel driver, a user-space driver, a "
      "vendor's "
      "library. The gpu lines say whether --initiator gpu can run: it needs a runtime and the kernels for "
      "it."};
  command.options.group("Output").add({.name = "json", .kind = Kind::flag, .help = "print JSON"});
  command.examples = {{"doorbell backends", "See why --initiator gpu is refused on this machine."}};
  command.run = run_backends;
  command.group = "This machine";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
