// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a server knows that its client goes on: during a phase, however long, the client says so, and a client
// that says nothing is given up.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

#include "exchange/exchange.hpp"

namespace doorbell::exchange {

/// For how many seconds a client may say nothing: between two phases it waits for no more than its own
/// limits. The arguments are both ends' limits of a message.
[[nodiscard]] double silent_limit_s(double servers_s, double clients_s);

/// Returns the client's next message but for those that it goes on, which must be of one of `types`. Throws
/// Error when the client has said nothing at all, or not a whole message, for `silent_s`.
[[nodiscard]] Exchange::Message next_of_client(Exchange& exchange, std::vector<std::string> types,
                                               double silent_s);

/// The client's side, for a thread that watches a phase.
class SignsOfLife {
 public:
  /// `exchange` must outlive it.
  explicit SignsOfLife(Exchange& exchange) : exchange_(exchange) {}
  /// Sends one when it is time; to be called often. Throws Error.
  void send();

 private:
  Exchange& exchange_;
  u64 sent_ns_ = 0;
};

}  // namespace doorbell::exchange
