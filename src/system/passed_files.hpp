// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Files that go with a message of a local socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <span>

#include "system/descriptor.hpp"

namespace doorbell {

/// Has `files` go with `m`. `room` is aligned as a cmsghdr, has a place for each of them and outlives `m`.
template <class Room>
void pass_files(msghdr& m, std::span<const int> files, Room& room) {
  if (files.empty()) return;
  m.msg_control = room.data();
  m.msg_controllen = CMSG_SPACE(files.size_bytes());
  cmsghdr* const c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(files.size_bytes());
  std::memcpy(CMSG_DATA(c), files.data(), files.size_bytes());
}

/// Gives each file that has come with `m` to `take`, as a Descriptor.
template <class Take>
void take_files(const msghdr& m, Take take) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&m), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      take(Descriptor(fd));
    }
  }
}

}  // namespace doorbell
