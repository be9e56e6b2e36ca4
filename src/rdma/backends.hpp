// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What an RDMA device is opened for.
#pragma once

#include <memory>
#include <string>

#include "model/fault.hpp"
#include "rdma/device.hpp"

namespace doorbell::rdma {

/// Only `spec` is needed; the rest lets a model fit itself to the run.
struct DeviceRequest {
  std::string spec = {};
  Provider provider = Provider::mlx5;
  std::shared_ptr<gpu::Gpu> gpu = {};
  bool gpu_memory = true;     ///< the device must reach memory of that GPU
  u32 queue_pairs = 1;        ///< that will be used
  u32 initiator_threads = 1;  ///< CPU threads that will drive them; 0 when a GPU does
  model::FaultRates faults = {};
  u64 seed = 1;
  u64 late_ns = 1'000'000'000;  ///< a completion later than this counts as late
};

}  // namespace doorbell::rdma
