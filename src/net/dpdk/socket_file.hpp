// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The file of memif's Unix socket, which a process that was killed leaves behind.
#pragma once

#include <string>

namespace doorbell::net::dpdk {

/// Removes a socket at which no process listens any more. Throws Error when one does, or when the file is
/// something else. `link`: the name of the setting in messages.
void clear_socket(const std::string& path, const std::string& link);

}  // namespace doorbell::net::dpdk
