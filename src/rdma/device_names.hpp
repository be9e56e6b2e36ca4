// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of a device's settings in messages of back ends.
#pragma once

#include <string>

namespace doorbell::rdma {

/// These words, or the options of a command.
struct DeviceNames {
  std::string device = "device";
  std::string provider = "provider";
};

}  // namespace doorbell::rdma
