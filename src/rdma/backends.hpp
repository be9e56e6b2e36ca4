// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of RDMA back ends: what `--device` may name. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/fault.hpp"
#include "rdma/nic.hpp"
#include "system/backend.hpp"

namespace doorbell::rdma {

/// What a device is opened for. `spec` and `provider` are needed; the rest lets a model fit itself to the
/// run.
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

using Backend = doorbell::Backend<Nic, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// The back end for `--provider` and `--device`; throws when there is none, saying what is missing.
[[nodiscard]] const Backend& backend_of(Provider provider, const std::string& spec);

/// Opens what the request names. Never substitutes one back end for another.
[[nodiscard]] std::unique_ptr<Nic> open_nic(const DeviceRequest& request);

}  // namespace doorbell::rdma
