// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/device_engine.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "model/config.hpp"

namespace doorbell::cli {

Option device_engine_option() {
  return {.name = "device-engine",
          .default_text = "cpu",
          .choices = model::engine_names(),
          .help =
              "what serves a model's queues: CPU threads, a kernel on --gpu, or that kernel's code on CPU "
              "threads (short for the model's key engine)",
          .group = "Device"};
}

std::string spec_with_engine(const Options& options, const std::string& device, const std::string& model) {
  const std::string& spec = options.text(device);
  return spec_with_engine(options, device, model, spec.substr(0, spec.find(':')) == model);
}

std::string spec_with_engine(const Options& options, const std::string& device, const std::string& model,
                             bool is_model) {
  const std::string& spec = options.text(device);
  if (!options.given("device-engine")) return spec;
  if (!is_model)
    throw Error("--device-engine", fmt::format("{} is not a model: it serves its queues itself", spec),
                fmt::format("it goes with --{} {}", device, model));
  return fmt::format("{}{}engine={}", spec, spec.find(':') == std::string::npos ? ":" : ",",
                     options.text("device-engine"));
}

}  // namespace doorbell::cli
