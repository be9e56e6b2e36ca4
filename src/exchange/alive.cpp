// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange/alive.hpp"

#include <algorithm>

#include "system/clock.hpp"

namespace doorbell::exchange {

namespace {

constexpr const char* kAlive = "alive";
constexpr u64 kAliveNs = 250'000'000;
constexpr double kSilentTimeouts = 3;

}  // namespace

double silent_limit_s(double servers_s, double clients_s) {
  return kSilentTimeouts * std::max(servers_s, clients_s);
}

Exchange::Message next_of_client(Exchange& exchange, std::vector<std::string> types, double silent_s) {
  types.emplace_back(kAlive);
  for (;;)
    if (Exchange::Message m = exchange.receive_any(types, silent_s); m.type != kAlive) return m;
}

void SignsOfLife::send() {
  const u64 now = wall_ns();
  if (now - sent_ns_ < kAliveNs) return;
  sent_ns_ = now;
  exchange_.send(kAlive, nlohmann::ordered_json::object());
}

}  // namespace doorbell::exchange
