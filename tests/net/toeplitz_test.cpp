// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The RSS hash against Microsoft's published values, and flow rules.

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "errors.hpp"
#include "golden/golden.hpp"
#include "net/raw/flows.hpp"
#include "net/raw/toeplitz.hpp"

namespace doorbell::net {
namespace {

using golden::json;

void expect_hashes(const json& vector, const Toeplitz& hash, int family, u32 address_bytes) {
  golden::Keys in(vector.at("inputs")), expect(vector.at("expect"));
  std::vector<u8> input(2 * address_bytes);
  ASSERT_EQ(inet_pton(family, in.text("source").c_str(), input.data()), 1);
  ASSERT_EQ(inet_pton(family, in.text("destination").c_str(), input.data() + address_bytes), 1);
  EXPECT_EQ(hash(input), expect("hash"));
  for (const char* port : {"source_port", "destination_port"}) {
    const u64 p = in(port);
    input.push_back(static_cast<u8>(p >> 8)), input.push_back(static_cast<u8>(p));
  }
  EXPECT_EQ(hash(input), expect("hash_ports"));
  in.expect_all_used("inputs");
  expect.expect_all_used("expect");
}

TEST(Toeplitz, HasItsPublishedValues) {
  const golden::Bytes bytes =
      golden::from_hex(golden::read_file("toeplitz").at("key_hex").get<std::string>());
  ASSERT_EQ(bytes.size(), kRssKeyBytes);
  RssKey key;
  std::ranges::copy(bytes, key.begin());
  EXPECT_EQ(key, kDefaultRssKey);
  const Toeplitz hash(key);
  golden::run_file("toeplitz", {{"ipv4", [&](const json& v) { expect_hashes(v, hash, AF_INET, 4); }},
                                {"ipv6", [&](const json& v) { expect_hashes(v, hash, AF_INET6, 16); }}});
}

TEST(Toeplitz, EachInputBitTakesItsOwn32BitsOfAnyKey) {
  RssKey key;
  for (u32 i = 0; i < kRssKeyBytes; ++i) key[i] = static_cast<u8>(i * 73 + 19);
  const Toeplitz hash(key);
  for (u32 bit = 0; bit < 8 * kRssInputBytes; ++bit) {
    std::vector<u8> input(kRssInputBytes);
    input[bit / 8] = static_cast<u8>(0x80 >> bit % 8);
    u32 want = 0;
    for (u32 i = 0; i < 32; ++i) want = want << 1 | (key[(bit + i) / 8] >> (7 - (bit + i) % 8) & 1);
    ASSERT_EQ(hash(input), want) << bit;
  }
}

TEST(IndirectionTable, TakesTheLowSevenBits) {
  const std::vector<u16> queues = {4, 2, 9};
  IndirectionTable t(queues);
  EXPECT_EQ(t.queue(0), 4);
  EXPECT_EQ(t.queue(2), 9);
  EXPECT_EQ(t.queue(127), 2);
  EXPECT_EQ(t.queue(128), 4);
  EXPECT_EQ(t.queue(0xffffff80), 4);
  t.set(127, 77);
  EXPECT_EQ(t.queue(0xffffffff), 77);
}

}  // namespace

namespace raw {
namespace {

/// A frame of `bytes` payload, all of whose bytes are `fill`.
std::vector<u8> frame_of(const FlowAddress& a, u32 bytes = 40, u8 fill = 0x5a) {
  std::vector<u8> f(kUdp4Bytes + bytes, fill);
  encode_udp4(a, bytes, f.data());
  return f;
}

FlowDecision decision(const FlowTable& t, const std::vector<u8>& f) {
  return t.decide(decode(f.data(), f.size()), f.data());
}

FlowAddress address() {
  FlowAddress a;
  a.source_ip = 0xc0000201, a.destination_ip = 0xc0000202;
  a.source_port = 1000, a.destination_port = 2000;
  return a;
}

TEST(FlowTable, ARuleHoldsWhenAllThatItAsksForDoes) {
  FlowRule all;
  all.match = {1000, 2000, 0xc0000201, 0xc0000202, FlowMatch::Word{4, 0xff00ff00, 0x5a005a00}};
  all.queues = {3};
  const FlowTable t({all}, 4);
  EXPECT_EQ(decision(t, frame_of(address())).kind, FlowDecision::Kind::queue);
  EXPECT_EQ(decision(t, frame_of(address())).queue, 3);
  std::vector<FlowAddress> others(4, address());
  others[0].source_port = 1001, others[1].destination_port = 2001;
  others[2].source_ip += 1, others[3].destination_ip += 1;
  for (const FlowAddress& a : others) EXPECT_EQ(decision(t, frame_of(a)).kind, FlowDecision::Kind::unmatched);
  EXPECT_EQ(decision(t, frame_of(address(), 40, 0x5b)).kind, FlowDecision::Kind::unmatched);
  // The word is not all there, at the end and before it.
  EXPECT_EQ(decision(t, frame_of(address(), 8)).kind, FlowDecision::Kind::queue);
  EXPECT_EQ(decision(t, frame_of(address(), 7)).kind, FlowDecision::Kind::unmatched);
  EXPECT_EQ(decision(t, frame_of(address(), 3)).kind, FlowDecision::Kind::unmatched);
}

TEST(FlowTable, TheFirstMatchDecidesAndNoQueueMeansDrop) {
  FlowRule drop, keep;
  drop.match.destination_port = 2000;
  keep.queues = {0};
  const FlowTable t({drop, keep}, 1);
  EXPECT_EQ(decision(t, frame_of(address())).kind, FlowDecision::Kind::drop);
  FlowAddress other = address();
  other.destination_port = 2001;
  EXPECT_EQ(decision(t, frame_of(other)).kind, FlowDecision::Kind::queue);
}

TEST(FlowTable, WhatIsNoPacketMatchesNothing) {
  FlowRule all;
  all.queues = {0};
  const FlowTable t({all}, 1);
  std::vector<u8> broken = frame_of(address());
  broken[kEthernetBytes + 10] ^= 1;  // the checksum
  EXPECT_EQ(decision(t, broken).kind, FlowDecision::Kind::unmatched);
  std::vector<u8> bare(100);
  encode_bare(address(), bare.data());
  EXPECT_EQ(decision(t, bare).kind, FlowDecision::Kind::queue);
  FlowRule ports;
  ports.match.source_port = 0;
  ports.queues = {0};
  EXPECT_EQ(decision(FlowTable({ports}, 1), bare).kind, FlowDecision::Kind::unmatched);
}

TEST(FlowTable, RssHashesAddressesAndPortsOfThePacket) {
  // The first published tuple, whose hash with ports is 0x51ccc178: entry 0x78 = 120 of the table.
  FlowAddress a;
  a.source_ip = 0x420995bb, a.destination_ip = 0xa18e6450;
  a.source_port = 2794, a.destination_port = 1766;
  FlowRule spread;
  spread.queues = {5, 6, 7};
  const FlowTable t({spread}, 8);
  const std::vector<u8> f = frame_of(a);
  EXPECT_EQ(t.hash(decode(f.data(), f.size()), f.data()), 0x51ccc178u);
  EXPECT_EQ(decision(t, f).queue, 5 + 120 % 3);
  std::set<u16> seen;
  for (u16 port = 0; port < 64; ++port) {
    a.source_port = port;
    seen.insert(decision(t, frame_of(a)).queue);
  }
  EXPECT_EQ(seen, (std::set<u16>{5, 6, 7}));
}

TEST(FlowTable, RefusesQueuesThatAreNotThere) {
  FlowRule r;
  r.queues = {2};
  test::expect_says(test::error_of([&] { FlowTable({r}, 2); }), "queue 2 is not in 0..1");
  r.queues = {1, 0, 1};
  test::expect_says(test::error_of([&] { FlowTable({r}, 2); }), "queue 1 is given twice");
}

}  // namespace
}  // namespace raw
}  // namespace doorbell::net
