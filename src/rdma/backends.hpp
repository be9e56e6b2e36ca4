// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of RDMA back ends: the names that a device may have. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/use.hpp"
#include "rdma/nic_device.hpp"
#include "system/backend.hpp"

namespace doorbell::rdma {

/// The purpose for which a device is opened. Only `spec` and `provider` are needed.
struct DeviceRequest {
  std::string spec = {};
  Provider provider = Provider::mlx5;
  std::shared_ptr<gpu::Gpu> gpu = {};
  model::Use use = {};
};

using Backend = doorbell::Backend<NicDevice, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// Finds the back end for a device of a provider. Throws Error if there is none, and says what is missing.
[[nodiscard]] const Backend& backend_of(Provider provider, const std::string& spec);

/// Opens the device that the request names. Never replaces one back end by another.
[[nodiscard]] std::unique_ptr<NicDevice> open_device(const DeviceRequest& request);

/// The devices of `doorbell run rdma`, which no sysfs shows; none where the system's libibverbs is used.
/// Never throws.
[[nodiscard]] std::vector<std::string> drop_in_devices();

}  // namespace doorbell::rdma
