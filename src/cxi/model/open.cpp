// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/open.hpp"

#include <doorbell/error.hpp>

#include "cxi/model/cassini.hpp"
#include "cxi/model/spec.hpp"
#include "cxi/settings.hpp"

namespace doorbell::cxi {

std::unique_ptr<Cassini> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec, setting::device);
  using Engine = ModelConfig::Engine;
  const std::string subject = setting::device + " model: engine";
  if (c.engine == Engine::gpu && request.use.initiator_threads != 0)
    throw Error(subject, "a kernel takes only doorbells that a GPU rings, and CPU threads are the initiators",
                "let a GPU be the initiator, or use engine=cpu");
  c.check_engine(subject, !request.gpus.empty(), request.use);
  c.fit(request.use);
  // "model" means the first model, number 0.
  const bool named = !request.spec.starts_with("model");
  return std::make_unique<ModelCassini>(
      c, named ? request.spec : "cxi-model0" + request.spec.substr(request.spec.find("model") + 5),
      request.gpus);
}

}  // namespace doorbell::cxi
