// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The process at the other end of a local socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

namespace doorbell::service {

/// As the kernel noted it when the socket was connected.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  std::vector<gid_t> groups;  ///< the main one and the others
};

/// A user that is nobody's: those share it whom the kernel does not name.
inline constexpr uid_t kNobody = ~uid_t{0};

/// None, with errno.
[[nodiscard]] std::optional<Peer> read_peer(int fd);

}  // namespace doorbell::service
