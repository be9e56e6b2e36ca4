// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What the two processes of a stream of sockets tell each other while they open it.
#pragma once

#include <doorbell/config.hpp>

#include <vector>

#include "exchange/exchange.hpp"

namespace doorbell::net::sockets {

/// Where the receiving process waits for its sender. Ports are the first free ones, so several runs of one
/// machine do not meet each other's.
struct Meeting {
  std::vector<u16> ports;  ///< of each flow
  u64 token = 0;           ///< the sender's TCP connections begin with it
};

/// Of the receiving process, with a token that is new.
[[nodiscard]] Meeting announce(exchange::Exchange& sender, const std::vector<u16>& ports);
/// Of the sending process. Throws Error, also where the other end has failed to open its ports.
[[nodiscard]] Meeting learn(exchange::Exchange& receiver, u32 flows);

}  // namespace doorbell::net::sockets
