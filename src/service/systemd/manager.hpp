// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The service manager: the sockets that it hands over, and what it is told.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

#include "system/descriptor.hpp"

namespace doorbell::service {

/// The listening SOCK_SEQPACKET sockets that the service manager has opened for this process; none is usual.
/// To be called before this process opens any file: their numbers are the lowest. Throws Error, and then owns
/// none.
[[nodiscard]] std::vector<Descriptor> activated_sockets();

/// Tells the service manager, if there is one ($NOTIFY_SOCKET), in the form of sd_notify(3), without waiting:
/// false if it takes no more now.
bool notify(const std::string& state);
/// How often it wants to hear from this process; 0: never.
[[nodiscard]] u64 watchdog_ns();

}  // namespace doorbell::service
