// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/device_engine.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "model/config.hpp"

namespace doorbell::cli {

Option device_engine_option() {
  return {.name = "device-engine",
          .kind = Kind::choice,
          .default_text = "cpu",
          .choices = model::engine_names(),
          .help =
              "what serves a model's queues: CPU threads, a kernel on --gpu, or that kernel's code on CPU "
              "threads (short for the model's key engine)",
          .group = "Device"};
}

std::string spec_with_engine(const Options& options, const std::string& device) {
  const std::string& spec = options.text(device);
  if (!options.given("device-engine")) return spec;
  if (spec != "model" && !spec.starts_with("model:"))
    throw Error("--device-engine", fmt::format("{} is not a model: it serves its queues itself", spec),
                fmt::format("it goes with --{} model", device));
  return fmt::format("{}{}engine={}", spec, spec == "model" ? ":" : ",", options.text("device-engine"));
}

}  // namespace doorbell::cli
