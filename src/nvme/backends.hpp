// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of NVMe back ends: what `--controller` may name. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvme/device.hpp"
#include "nvme/model/config.hpp"
#include "system/backend.hpp"

namespace doorbell::nvme {

/// What a device is opened for. Only `spec` is needed; the rest lets a model fit itself to the run.
struct DeviceRequest {
  std::string spec = {};
  std::shared_ptr<gpu::Gpu> gpu = {};
  bool gpu_memory = true;     ///< the device must reach memory of that GPU
  u32 queues = 1;             ///< I/O queue pairs that will be used
  u32 initiator_threads = 1;  ///< CPU threads that will drive them; 0 when a GPU does
  model::FaultRates faults = {};
  u64 seed = 1;
  u64 late_ns = 1'000'000'000;  ///< a completion later than this counts as late
  double timeout_s = 10;        ///< how long an answer is waited for
};

using Backend = doorbell::Backend<Device, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// The back end that a --controller names; throws when there is none.
[[nodiscard]] const Backend& backend_of(const std::string& spec);

/// Opens what the request names. Never substitutes one back end for another.
[[nodiscard]] std::unique_ptr<Device> open_device(const DeviceRequest& request);

/// "model:media=ram,lba=4096" to a configuration; an unknown key or a bad value is an Error that names it.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec);

}  // namespace doorbell::nvme
