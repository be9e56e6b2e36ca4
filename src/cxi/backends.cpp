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

std::unique_ptr<Cassini> open_cassini(const DeviceRequest& request) {
  if (const Backend* const b = find_backend(backends(), request)) return b->open(request);
  const std::string& device = setting::device;
  throw Error(fmt::format("{} {}", device, request.spec), "no back end of this build drives it",
              fmt::format("give {} cxi-model0 for the software model", device), ExitCode::absent);
}

}  // namespace doorbell::cxi
