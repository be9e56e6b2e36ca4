// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Making the connections of a TCP stream, with deadlines.
#pragma once

#include "net/sockets/socket.hpp"

namespace doorbell::net::sockets {

/// Connects `from` (an address of this end; any port) to `to` until `until_ns`. With `retry`, a refusal is
/// no error before then: the other process may not listen yet. `send_bytes`: of the socket's buffer; 0: the
/// kernel tunes it. Throws Error.
[[nodiscard]] Descriptor connect_tcp(const std::string& from, const sockaddr_in& to, u64 send_bytes,
                                     bool retry, u64 until_ns);

/// Says on a new connection which one it is. Throws Error.
void greet(int fd, u64 token);
/// Accepts the connection on which the sender has greeted with this token, until `until_ns`. Others may be
/// there first, and may say nothing: they are closed, and counted in `strangers`. Throws Error.
[[nodiscard]] Descriptor accept_greeting(int listener, u64 token, u64 until_ns, u64& strangers);

/// Accepts a connection until `until_ns`, if `peer` is given that of this address alone: others are closed,
/// and counted in `strangers`. Throws Error.
[[nodiscard]] Descriptor accept_tcp(int listener, const sockaddr_in* peer, u64 until_ns, u64& strangers);

}  // namespace doorbell::net::sockets
