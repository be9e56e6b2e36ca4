// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/backends.hpp"

#include <algorithm>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/texts.hpp"
#include "cxi/backends.hpp"
#include "nvme/backends.hpp"
#include "rdma/backends.hpp"

namespace doorbell::cli {
namespace {

std::string_view runtime_name(gpu::Runtime runtime) {
  return runtime == gpu::Runtime::cuda ? "cuda" : "hip";
}

/// The code objects that this build carries for one runtime.
Backend kernels_for(gpu::Runtime runtime) {
  std::vector<std::string> names;
  std::size_t bytes = 0;
  for (const gpu::CodeObject& object : gpu::code_objects()) {
    if (object.runtime != runtime) continue;
    names.push_back(object.name);
    bytes += object.image.size();
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string name = fmt::format("{}-kernels", runtime_name(runtime));
  if (names.empty()) {
    return {"gpu", name, false,
            fmt::format("left out of this build (no {} when it was configured, or DOORBELL_GPU=OFF)",
                        runtime == gpu::Runtime::cuda ? "nvcc" : "hipcc")};
  }
  return {"gpu", name, true, fmt::format("{} ({} KiB)", fmt::join(names, ", "), (bytes + 1023) / 1024)};
}

int run(const Options& options, Context&) {
  const std::vector<Backend> all = backends();
  if (options.flag("json")) {
    auto list = nlohmann::ordered_json::array();
    for (const Backend& b : all) {
      list.push_back({{"path", b.path}, {"backend", b.name}, {"usable", b.usable}, {"detail", b.detail}});
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"backends", list}}.dump(
                           2, ' ', false, nlohmann::json::error_handler_t::replace));
    return 0;
  }
  fmt::print("{:<7} {:<13} {:<7} {}\n", "path", "back end", "usable", "detail");
  for (const Backend& b : all) {
    constexpr std::size_t kColumn = 8 + 14 + 8;
    fmt::print("{:<7} {:<13} {:<7} {}\n", b.path, b.name, b.usable ? "yes" : "no",
               wrap(b.detail, kHelpWidth - kColumn, kColumn));
  }
  return 0;
}

}  // namespace

std::vector<Backend> backends() {
  std::vector<Backend> all;
  const auto add = [&all](const char* path, const auto& backends_of_path) {
    for (const auto& b : backends_of_path) {
      const BackendStatus status = b.status();
      all.push_back({path, b.name, status.usable, status.detail});
    }
  };
  add("nvme", nvme::backends());
  all.push_back({"nvme", "file", true, "file:PATH through the kernel: io_uring, or pread and pwrite"});
  add("rdma", rdma::backends());
  add("cxi", cxi::backends());
  for (const gpu::RuntimeStatus& status : gpu::runtimes()) {
    all.push_back({"gpu", std::string(runtime_name(status.runtime)), status.usable, status.detail});
    all.push_back(kernels_for(status.runtime));
  }
  return all;
}

Command backends_command() {
  Command command;
  command.name = "backends";
  command.summary = "each path's back ends: usable, or why not";
  command.description = {
      "A back end is one way to reach a device: a software model, a kernel driver, a user-space driver, a "
      "vendor's "
      "library. The gpu lines say whether --initiator gpu can run: it needs a runtime and the kernels for "
      "it."};
  command.options.add({.name = "json", .kind = Kind::flag, .help = "print JSON", .group = "Output"});
  command.examples = {{"doorbell backends", "See why --initiator gpu is refused on this machine."}};
  command.run = run;
  command.group = "This machine";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
