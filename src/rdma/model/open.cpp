// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/open.hpp"

#include "model/device_thread.hpp"
#include "rdma/model/nic.hpp"
#include "rdma/model/spec.hpp"

namespace doorbell::rdma {

std::unique_ptr<Nic> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec);
  if (c.threads == 0) c.threads = model::device_threads(request.queue_pairs, request.initiator_threads);
  c.gpu_memory = request.gpu_memory;
  c.faults = request.faults;
  c.seed = request.seed;
  if (c.delay_ns == 0) c.delay_ns = request.late_ns + request.late_ns / 2;
  return std::make_unique<ModelNic>(c, request.provider, request.spec, request.gpu);
}

}  // namespace doorbell::rdma
