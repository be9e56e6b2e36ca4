// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of Cassini back ends: what `--device` may name. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cxi/device.hpp"
#include "model/fault.hpp"
#include "system/backend.hpp"

namespace doorbell::cxi {

/// What a device is opened for. Only `spec` is needed; the rest lets a model fit itself to the run.
struct DeviceRequest {
  std::string spec = {};  ///< "cxi0", or "cxi-model0[:KEY=VALUE,...]"; "model" is "cxi-model0"
  /// The GPUs whose memory the device must reach; the first one also reaches its queues.
  std::vector<std::shared_ptr<gpu::Gpu>> gpus = {};
  bool gpu_memory = true;     ///< the device must reach memory of those GPUs
  u32 queues = 1;             ///< transmit queues that will be used
  u32 initiator_threads = 1;  ///< CPU threads that will drive them; 0 when a GPU does
  model::FaultRates faults = {};
  u64 seed = 1;
  u64 late_ns = 1'000'000'000;  ///< an acknowledgement later than this counts as late
};

using Backend = doorbell::Backend<Device, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// Opens what the request names. Never substitutes one back end for another.
[[nodiscard]] std::unique_ptr<Device> open_device(const DeviceRequest& request);

}  // namespace doorbell::cxi
