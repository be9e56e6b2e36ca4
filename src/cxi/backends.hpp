// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The table of Cassini back ends. A new back end is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cxi/cassini_device.hpp"
#include "model/use.hpp"
#include "system/backend.hpp"

namespace doorbell::cxi {

/// The purpose for which a device is opened. Only `spec` is needed.
struct DeviceRequest {
  std::string spec = {};  ///< "cxi0", or "cxi-model0[:KEY=VALUE,...]"; "model" is "cxi-model0"
  /// The GPUs whose memory the device must reach; the first one also drives its queues.
  std::vector<std::shared_ptr<gpu::Gpu>> gpus = {};
  model::Use use = {};
};

using Backend = doorbell::Backend<CassiniDevice, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// Opens the device that the request names. Never replaces one back end by another.
[[nodiscard]] std::unique_ptr<CassiniDevice> open_device(const DeviceRequest& request);

}  // namespace doorbell::cxi
