// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/open.hpp"

#include "rdma/model/nic.hpp"
#include "rdma/model/spec.hpp"
#include "rdma/settings.hpp"

namespace doorbell::rdma {

std::unique_ptr<NicDevice> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec, setting::device);
  c.check_engine_that_gpus_ring(setting::device + " model: engine", request.gpu != nullptr, request.use);
  c.fit(request.use);
  return std::make_unique<ModelNic>(c, request.provider, request.spec, request.gpu);
}

}  // namespace doorbell::rdma
