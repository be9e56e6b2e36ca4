// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where the two ends of a stream of sockets meet, and what their processes tell each other of it.
#pragma once

#include <doorbell/net/stream_request.hpp>

#include <vector>

#include "exchange/exchange.hpp"
#include "net/link.hpp"

namespace doorbell::net::sockets {

struct Meeting {
  std::vector<u16> ports;  ///< at which the receiving end waits, one a flow
  u64 token = 0;           ///< with which the sender's TCP connections begin, where it is in another process
};

/// True if the sending end is told the ports, so that any free ones do, and several runs of one machine do
/// not meet each other's. Otherwise it only knows those that were asked for.
[[nodiscard]] bool sender_is_told(const StreamRequest& request, Link& link);
/// Behind the opening of this process's receivers, whose ports these are, and before that of its senders.
/// Throws Error, also where the other end has failed.
[[nodiscard]] Meeting meet(const StreamRequest& request, Link& link, std::vector<u16> ports);

/// The receiving process's message to its sender in meet(). Throws Error.
[[nodiscard]] Meeting learn(exchange::Exchange& receiver, u32 flows);

}  // namespace doorbell::net::sockets
