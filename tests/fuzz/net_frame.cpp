// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Received frames: the decoder, and the flow rules that look at what it found.

#include "fuzz/fuzz.hpp"
#include "net/raw/flows.hpp"

using namespace doorbell;
using namespace doorbell::net::raw;
using fuzz::require;

namespace {

/// One table for each first byte of a frame, made once: what is fuzzed is the decoder.
const FlowTable& table_for(u8 first) {
  static const auto tables = [] {
    std::vector<FlowTable> all;
    for (u32 value = 0; value < 256; ++value) {
      FlowRule word, spread;
      word.match.word = FlowMatch::Word{value, 0xffff, 0x1234};
      word.queues = {0};
      spread.queues = {1, 2};
      all.emplace_back(std::vector{word, spread}, 3);
    }
    return all;
  }();
  return tables[first];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  const Decoded d = decode(data, size);
  if (d.kind != Decoded::Kind::unmatched) {
    require(d.payload_offset <= size && d.payload_bytes <= size - d.payload_offset);
    require(d.vlan_tags <= 2 && d.vlan < 4096);
  }
  const FlowDecision decision = table_for(size > 0 ? data[0] : u8{0}).decide(d, data);
  require((decision.kind == FlowDecision::Kind::unmatched) == (d.kind == Decoded::Kind::unmatched));
  require(decision.queue < 3);

  // A packet between the same ends with a payload of the same length decodes to what it was made of.
  if (d.kind != Decoded::Kind::udp4 || size > 4096) return 0;
  FlowAddress address;
  address.source_ip = d.source_ip, address.destination_ip = d.destination_ip;
  address.source_port = d.source_port, address.destination_port = d.destination_port;
  static u8 again[kUdp4Bytes + 4096];
  encode_udp4(address, d.payload_bytes, again);
  const Decoded e = decode(again, kUdp4Bytes + d.payload_bytes);
  require(e.kind == d.kind && e.payload_bytes == d.payload_bytes && e.payload_offset == kUdp4Bytes);
  require(e.source_ip == d.source_ip && e.destination_ip == d.destination_ip);
  require(e.source_port == d.source_port && e.destination_port == d.destination_port);
  return 0;
}
