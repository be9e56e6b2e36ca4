// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software Cassini as a back end.
#pragma once

#include <memory>

#include "cxi/backends.hpp"
#include "cxi/cassini_device.hpp"

namespace doorbell::cxi {

/// Opens the device of "cxi-modelN[:KEY=VALUE,...]".
[[nodiscard]] std::unique_ptr<CassiniDevice> open_model(const DeviceRequest& request);

}  // namespace doorbell::cxi
