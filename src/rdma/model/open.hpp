// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software NIC as a back end.
#pragma once

#include <memory>

#include "rdma/backends.hpp"
#include "rdma/nic_device.hpp"

namespace doorbell::rdma {

/// Opens the device of "model[:KEY=VALUE,...]" with the queue format of `request.provider`.
[[nodiscard]] std::unique_ptr<NicDevice> open_model(const DeviceRequest& request);

}  // namespace doorbell::rdma
