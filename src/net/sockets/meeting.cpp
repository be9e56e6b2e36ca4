// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/meeting.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <random>

#include "exchange/fields.hpp"

namespace doorbell::net::sockets {

Meeting announce(exchange::Exchange& sender, const std::vector<u16>& ports) {
  std::random_device random;
  const Meeting m{ports, static_cast<u64>(random()) << 32 | random()};
  sender.send("ports", {{"ports", m.ports}, {"token", m.token}});
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
