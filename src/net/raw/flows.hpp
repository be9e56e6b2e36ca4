// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Flow rules, as a NIC has them: which received packets go to which queue. What no rule matches reaches no
// queue.
#pragma once

#include <doorbell/net/stream_request.hpp>

#include <optional>
#include <vector>

#include "net/raw/frames.hpp"
#include "net/raw/toeplitz.hpp"

namespace doorbell::net::raw {

/// Holds for a packet for which all that is given holds. A rule that asks for nothing matches every packet
/// that decode() understands; one that asks for an IPv4 address matches no IPv6.
struct FlowMatch {
  std::optional<u16> source_port = {}, destination_port = {};
  std::optional<u32> source_ip = {}, destination_ip = {};
  /// Four payload bytes, read in network byte order: (word & mask) == value.
  struct Word {
    u32 offset = 0;
    u32 mask = ~0u;
    u32 value = 0;
  };
  std::optional<Word> word = {};
};

/// One queue; several, chosen by RSS; none: the packet is dropped.
struct FlowRule {
  FlowMatch match;
  std::vector<u16> queues;
};

/// Where a packet goes.
struct FlowDecision {
  enum class Kind : u8 { queue, drop, unmatched };
  Kind kind = Kind::unmatched;
  u16 queue = 0;
};

class FlowTable {
 public:
  /// The first rule that matches decides. Throws Error for a queue that is not there, or one named twice.
  FlowTable(const std::vector<FlowRule>& rules, u32 queues, const RssKey& key = kDefaultRssKey,
            RssFields fields = RssFields::addresses_and_ports);

  /// `decoded` is what decode() found in `frame`.
  [[nodiscard]] FlowDecision decide(const Decoded& decoded, const u8* frame) const;
  /// Which queue of a rule with several: the hash is over addresses and, with those fields, ports. 0 for a
  /// packet without IP, as in a NIC.
  [[nodiscard]] u32 hash(const Decoded& decoded, const u8* frame) const;

 private:
  struct Row {
    FlowMatch match;
    FlowDecision::Kind kind;
    bool spread;  ///< by RSS
    IndirectionTable table;
  };
  std::vector<Row> rows_;
  Toeplitz hash_;
  RssFields fields_;
};

}  // namespace doorbell::net::raw
