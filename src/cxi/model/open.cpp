// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/open.hpp"

#include "cxi/model/cassini.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/settings.hpp"

namespace doorbell::cxi {

std::unique_ptr<CassiniDevice> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec, setting::device);
  c.check_engine_that_gpus_ring(setting::device + " model: engine", !request.gpus.empty(), request.use);
  c.fit(request.use);
  // "model" means the first model, number 0.
  const bool named = !request.spec.starts_with("model");
  return std::make_unique<ModelCassini>(
      c, named ? request.spec : "cxi-model0" + request.spec.substr(request.spec.find("model") + 5),
      request.gpus);
}

}  // namespace doorbell::cxi
