// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/flows.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace doorbell::net::raw {

namespace {

using Kind = Decoded::Kind;

bool holds(const FlowMatch& m, const Decoded& d, const u8* frame) {
  const bool udp = d.kind == Kind::udp4 || d.kind == Kind::udp6;
  if ((m.source_port || m.destination_port) && !udp) return false;
  if ((m.source_ip || m.destination_ip) && d.kind != Kind::udp4) return false;
  if (m.source_port && *m.source_port != d.source_port) return false;
  if (m.destination_port && *m.destination_port != d.destination_port) return false;
  if (m.source_ip && *m.source_ip != d.source_ip) return false;
  if (m.destination_ip && *m.destination_ip != d.destination_ip) return false;
  if (!m.word) return true;
  if (d.payload_bytes < 4 || m.word->offset > d.payload_bytes - 4) return false;
  const u8* const p = frame + d.payload_offset + m.word->offset;
  const u32 word = static_cast<u32>(p[0]) << 24 | static_cast<u32>(p[1] << 16 | p[2] << 8 | p[3]);
  return (word & m.word->mask) == m.word->value;
}

}  // namespace

FlowTable::FlowTable(const std::vector<FlowRule>& rules, u32 queues, const RssKey& key, RssFields fields)
    : hash_(key), fields_(fields) {
  static constexpr u16 kNone[] = {0};
  for (const FlowRule& r : rules) {
    for (const u16 q : r.queues) {
      if (q >= queues) throw Error("a flow rule", fmt::format("queue {} is not in 0..{}", q, queues - 1));
      if (std::ranges::count(r.queues, q) > 1)
        throw Error("a flow rule", fmt::format("queue {} is given twice", q));
    }
    if (r.queues.empty()) {
      rows_.push_back({r.match, FlowDecision::Kind::drop, false, IndirectionTable(kNone)});
    } else {
      rows_.push_back({r.match, FlowDecision::Kind::queue, r.queues.size() > 1, IndirectionTable(r.queues)});
    }
  }
}

u32 FlowTable::hash(const Decoded& d, const u8* frame) const {
  if (d.kind != Kind::udp4 && d.kind != Kind::udp6) return 0;
  const u32 addresses = d.kind == Kind::udp4 ? 8 : 32;
  u8 input[kRssInputBytes];
  std::memcpy(input, frame + d.address_offset, addresses);
  if (fields_ == RssFields::addresses) return hash_({input, addresses});
  std::memcpy(input + addresses, frame + d.ports_offset, 4);
  return hash_({input, addresses + 4});
}

FlowDecision FlowTable::decide(const Decoded& decoded, const u8* frame) const {
  if (decoded.kind == Kind::unmatched) return {};
  for (const Row& r : rows_)
    if (holds(r.match, decoded, frame)) return {r.kind, r.table.queue(r.spread ? hash(decoded, frame) : 0)};
  return {};
}

}  // namespace doorbell::net::raw
