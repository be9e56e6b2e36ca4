// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The process at the other end of a local socket.
#pragma once

#include <sys/types.h>

#include <vector>

namespace doorbell::service {

/// As the kernel noted it when the socket was connected.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
  std::vector<gid_t> groups;  ///< the main one and the others
};

/// False with an errno.
[[nodiscard]] bool read_peer(int fd, Peer& peer, int& error);

}  // namespace doorbell::service
