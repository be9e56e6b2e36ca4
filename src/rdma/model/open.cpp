// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/open.hpp"

#include <algorithm>
#include <thread>

#include "rdma/model/nic.hpp"
#include "rdma/model/spec.hpp"

namespace doorbell::rdma {

std::unique_ptr<Device> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec);
  if (c.threads == 0) {
    // Every device thread polls, and so does every initiator thread: together no more than the cores.
    const u32 cores = std::max(std::thread::hardware_concurrency(), 1u);
    const u32 left = cores > request.initiator_threads ? cores - request.initiator_threads : 1;
    c.threads = std::clamp(request.queue_pairs, 1u, left);
  }
  c.gpu_memory = request.gpu_memory;
  c.faults = request.faults;
  c.seed = request.seed;
  if (c.delay_ns == 0) c.delay_ns = request.late_ns + request.late_ns / 2;
  return std::make_unique<ModelNic>(c, request.provider, request.spec, request.gpu);
}

}  // namespace doorbell::rdma
