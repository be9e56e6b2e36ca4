// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of NVMe back ends: the names that a controller may have. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nvme/controller_interface.hpp"
#include "nvme/model/config.hpp"
#include "nvme/settings.hpp"
#include "system/backend.hpp"

namespace doorbell::nvme {

/// A request to open a device. Only `spec` is needed.
struct DeviceRequest {
  std::string spec = {};
  std::shared_ptr<gpu::Gpu> gpu = {};
  model::Use use = {};
  double timeout_s = 10;  ///< how long an answer is waited for
};

using Backend = doorbell::Backend<ControllerInterface, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// The back end that a controller's name is of; throws when there is none.
[[nodiscard]] const Backend& backend_of(const std::string& spec);

/// Opens what the request names. Never substitutes one back end for another.
[[nodiscard]] std::unique_ptr<ControllerInterface> open_device(const DeviceRequest& request);

/// True for a controller that runs on the GPU it is opened with, whoever drives it.
[[nodiscard]] bool needs_gpu(const std::string& spec);

/// "model:media=ram,lba=4096" to a configuration; an unknown key or a bad value is an Error that names it.
/// `controller`: the setting that names the controller.
[[nodiscard]] ModelConfig parse_model_spec(const std::string& spec,
                                           const std::string& controller = setting::controller);

}  // namespace doorbell::nvme
