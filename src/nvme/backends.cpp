// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "nvme/model/controller.hpp"
#include "nvme/model/spec.hpp"

namespace doorbell::nvme {

namespace {

bool is_model(const std::string& spec) {
  return spec == "model" || spec.starts_with("model:");
}

std::unique_ptr<Device> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec);
  c.max_queues = std::max(c.max_queues, 1u);
  if (c.threads == 0) {
    // Every device thread polls, and so does every initiator thread: together no more than the cores.
    const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
    const u32 left = cores > request.initiator_threads ? cores - request.initiator_threads : 1;
    c.threads = std::clamp(request.queues, 1u, left);
  }
  c.gpu_memory = request.gpu_memory;
  c.faults = request.faults;
  c.seed = request.seed;
  if (c.delay_ns == 0) c.delay_ns = request.late_ns + request.late_ns / 2;
  using model::Fault;
  for (const Fault f : {Fault::corrupt, Fault::misplace, Fault::stale})
    if (c.media == ModelConfig::Media::null && c.faults.of(f) > 0)
      throw Error(fmt::format("--fault {}", name(f)), "null media moves no data that could be wrong",
                  "use model:media=ram");
  return std::make_unique<ModelController>(c, request.spec, request.gpu);
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "model[:KEY=VALUE,...]", "a software controller; needs no hardware", is_model, open_model},
  };
  return all;
}

std::unique_ptr<Device> open_device(const DeviceRequest& request) {
  std::string known;
  for (const Backend& b : backends()) {
    if (b.accepts(request.spec)) return b.open(request);
    known += (known.empty() ? "" : ", ") + b.syntax;
  }
  throw Error(fmt::format("controller '{}'", request.spec), "no back end knows this name", "give " + known);
}

}  // namespace doorbell::nvme
