// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "cxi/libcxi/cassini.hpp"
#include "cxi/libcxi/library.hpp"
#include "cxi/model/open.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/settings.hpp"

namespace doorbell::cxi {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "cxi-modelN[:KEY=VALUE,...]", "model",
       [] {
         return BackendStatus{true, "software Cassini: command queues, events, counters, portals, faults"};
       },
       [](const DeviceRequest& request) { return is_model(request.spec); }, open_model,
       [](const DeviceRequest& request) { (void)parse_model_spec(request.spec, setting::device); }},
      {"libcxi", "cxiN", "hardware", [] { return libcxi_status(); },
       [](const DeviceRequest& request) { return libcxi_accepts(request.spec); }, open_libcxi},
  };
  return all;
}

std::unique_ptr<Cassini> open_cassini(const CassiniRequest& r) {
  const bool by_gpu = r.initiator == Initiator::gpu;
  if (r.gpus.empty() && (by_gpu || r.gpu_memory))
    throw Error(fmt::format("{} {}", setting::device, r.device),
                "a GPU is to use it, and the request names none", "open one by gpu::open()");
  return open_device({.spec = r.device,
                      .gpus = r.gpus,
                      .use = {.gpu_memory = r.gpu_memory, .initiator_threads = by_gpu ? 0u : 1u}});
}

std::unique_ptr<CassiniDevice> open_device(const DeviceRequest& request) {
  if (const Backend* const b = find_backend(backends(), request)) return b->open(request);
  const std::string& device = setting::device;
  throw Error(fmt::format("{} {}", device, request.spec), "no back end of this build drives it",
              fmt::format("give {} cxi-model0 for the software model", device), ExitCode::absent);
}

}  // namespace doorbell::cxi
