// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// TCP with deadlines: the part that Exchange needs.
#pragma once

#include <string>

#include "rdma/exchange.hpp"

namespace doorbell::rdma {

/// A moment on the monotonic clock, and what else can end a wait.
struct Wait {
  u64 until_ns = 0;
  const measure::StopFlag* stop = nullptr;
  [[nodiscard]] static Wait lasting(double seconds, const measure::StopFlag* stop);
};

enum class Waited { ready, expired, stopped };
/// Waits until `fd` has one of the poll(2) `events` or has failed.
[[nodiscard]] Waited wait_for(int fd, short events, const Wait& wait);

/// A connected, non-blocking socket and the address that answered. Throws doorbell::Error.
struct Connected {
  Descriptor socket;
  std::string peer;
};
[[nodiscard]] Connected connect_tcp(const SocketName& to, const Wait& wait);
[[nodiscard]] Descriptor listen_tcp(const SocketName& at);
[[nodiscard]] Connected accept_tcp(int listener, const SocketName& at, const Wait& wait);
[[nodiscard]] u16 bound_port(int fd);

}  // namespace doorbell::rdma
