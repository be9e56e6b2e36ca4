// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The registry of RDMA back ends: what `--device` may name. A new one is a line in backends.cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/use.hpp"
#include "rdma/nic.hpp"
#include "system/backend.hpp"

namespace doorbell::rdma {

/// What a device is opened for. Only `spec` and `provider` are needed.
struct DeviceRequest {
  std::string spec = {};
  Provider provider = Provider::mlx5;
  std::shared_ptr<gpu::Gpu> gpu = {};
  model::Use use = {};
};

using Backend = doorbell::Backend<Nic, DeviceRequest>;

[[nodiscard]] const std::vector<Backend>& backends();

/// The back end for `--provider` and `--device`; throws when there is none, saying what is missing.
[[nodiscard]] const Backend& backend_of(Provider provider, const std::string& spec);

/// Opens what the request names. Never substitutes one back end for another.
[[nodiscard]] std::unique_ptr<Nic> open_nic(const DeviceRequest& request);

}  // namespace doorbell::rdma
