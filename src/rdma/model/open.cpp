// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/open.hpp"

#include <doorbell/error.hpp>

#include "rdma/model/nic.hpp"
#include "rdma/model/spec.hpp"
#include "rdma/settings.hpp"

namespace doorbell::rdma {

std::unique_ptr<Nic> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec, setting::device);
  using Engine = ModelConfig::Engine;
  const std::string subject = setting::device + " model: engine";
  if (c.engine == Engine::gpu && request.use.initiator_threads != 0)
    throw Error(subject, "a kernel takes only doorbells that a GPU rings, and CPU threads are the initiators",
                "let a GPU be the initiator, or use engine=cpu");
  c.check_engine(subject, request.gpu != nullptr, request.use);
  c.fit(request.use);
  return std::make_unique<ModelNic>(c, request.provider, request.spec, request.gpu);
}

}  // namespace doorbell::rdma
