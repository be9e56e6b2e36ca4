// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A socket in the file system, as a server that a test plays has it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "service/local_socket.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

/// Bound to `path`, where nothing may be; listen() is left to the caller.
inline Descriptor bound_at(const std::string& path) {
  Descriptor fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = service::local_address(path, "a socket");
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

}  // namespace doorbell::qdma
