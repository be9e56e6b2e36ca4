// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/peer.hpp"

#include <sys/socket.h>

#include <cerrno>

namespace doorbell::service {

std::optional<Peer> read_peer(int fd) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return {};
  Peer peer{.pid = who.pid, .uid = who.uid, .groups = {who.gid}};
  std::vector<gid_t> more(64);
  for (;;) {
    size = static_cast<socklen_t>(more.size() * sizeof(gid_t));
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, more.data(), &size) == 0) break;
    if (errno == ERANGE) {
      more.resize(size / sizeof(gid_t));
      continue;
    }
    size = 0;  // a kernel before 4.13: the main group only
    break;
  }
  more.resize(size / sizeof(gid_t));
  peer.groups.insert(peer.groups.end(), more.begin(), more.end());
  return peer;
}

}  // namespace doorbell::service
