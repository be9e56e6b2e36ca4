// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The drop-in's devices as sysfs would show them.
#pragma once

#include "system/private_view.hpp"

namespace doorbell::cli {

/// /sys/class with `devices` software NICs in place of this machine's RDMA devices. `address`: the first
/// one's IPv4 address in the host's order, each other's is one more; 0: each process has its own in
/// 127.77.0.0/16, and no GIDs are shown. Throws Error if no interface has an address. Source: Linux,
/// Documentation/ABI/stable/sysfs-class-infiniband.
[[nodiscard]] FolderView sysfs_view(u32 devices, u32 address);

}  // namespace doorbell::cli
