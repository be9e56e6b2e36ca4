// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/meeting.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "exchange/fields.hpp"

namespace doorbell::net::sockets {

bool sender_is_told(const StreamRequest& r, Link& link) {
  return (r.has_tx && r.has_rx) || link.other_process() != nullptr;
}

Meeting meet(const StreamRequest& r, Link& link, std::vector<u16> ports) {
  exchange::Exchange* const other = link.other_process();
  if (other != nullptr && !r.has_rx) return learn(*other, r.flows);
  Meeting m{std::move(ports)};
  for (u32 f = 0; !r.has_rx && f < r.flows; ++f) m.ports.push_back(static_cast<u16>(r.port + f));
  if (other == nullptr) return m;
  m.token = exchange::new_nonce();
  other->send("ports", {{"ports", m.ports}, {"token", m.token}});
  return m;
}

Meeting learn(exchange::Exchange& receiver, u32 flows) {
  const nlohmann::ordered_json message = receiver.receive("ports");
  Meeting m;
  for (const auto& port : exchange::list(message, "ports", flows)) {
    if (!port.is_number_unsigned() || port.get<u64>() == 0 || port.get<u64>() > 0xffff)
      throw Error(exchange::kOtherEnd, "a port that it sends is not in 1..65535");
    m.ports.push_back(port.get<u16>());
  }
  if (m.ports.size() != flows)
    throw Error(exchange::kOtherEnd, fmt::format("it sends {} ports for {} flows", m.ports.size(), flows));
  m.token = exchange::number(message, "token", 0, ~u64{0});
  return m;
}

}  // namespace doorbell::net::sockets
