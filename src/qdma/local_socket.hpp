// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Unix sockets by their path.
#pragma once

#include <doorbell/config.hpp>
#include <sys/un.h>

#include <string>

#include "qdma/patience.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// How long a client tries to reach a server that takes no connection, or less where its patience is less.
inline constexpr double kConnectLimitS = 5;

/// The address of a path. Throws Error that begins with `subject` unless the path has 1 to 107 characters.
[[nodiscard]] sockaddr_un local_address(const std::string& path, const std::string& subject);

/// Connects to a listening SOCK_SEQPACKET socket. Empty with an errno: ETIMEDOUT if as many clients as fit
/// waited there all the time, EINTR if a stop has ended the wait.
[[nodiscard]] Descriptor connect_local(const sockaddr_un& address, const Patience& patience, int& error);

/// Whether the path is a socket file at which no process listens. `type`: SOCK_SEQPACKET or SOCK_STREAM.
[[nodiscard]] bool is_abandoned(const std::string& path, int type);

}  // namespace doorbell::qdma
