// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/libcxi/cassini.hpp"

#include "cxi/libcxi/endpoint.hpp"

namespace doorbell::cxi {

LibcxiCassini::LibcxiCassini(const std::string& name, std::vector<std::shared_ptr<gpu::Gpu>> gpus)
    : gpus_(std::move(gpus)),
      context_(std::make_shared<const LibcxiContext>(name, gpus_.empty() ? nullptr : gpus_.front())) {}

std::string LibcxiCassini::name() const {
  return context_->name;
}

Limits LibcxiCassini::limits() const {
  return {.gpu_memory = !gpus_.empty(), .gpu_initiator = !gpus_.empty()};
}

Region LibcxiCassini::allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) {
  return {place, bytes, std::move(gpu)};
}

std::unique_ptr<Endpoint> LibcxiCassini::open(u32 service) {
  return std::make_unique<LibcxiEndpoint>(context_, service);
}

std::unique_ptr<CassiniDevice> open_libcxi(const DeviceRequest& request) {
  return std::make_unique<LibcxiCassini>(request.spec, request.gpus);
}

}  // namespace doorbell::cxi
