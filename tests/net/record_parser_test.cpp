// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/net/packet.hpp>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "net/local_link.hpp"
#include "net/sockets/record_parser.hpp"

namespace doorbell::net {
namespace {

using sockets::RecordParser;
using State = RecordParser::State;
using test::packet;

TEST(RecordParser, RecordsOneBehindTheOther) {
  std::vector<u8> bytes;
  for (const u32 n : {32u, 33u, 1000u, 64u}) {
    const std::vector<u8> one = packet(3, n, n);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  RecordParser p(1000);
  u64 at = 0;
  for (const u32 n : {32u, 33u, 1000u, 64u}) {
    u32 length = 0;
    ASSERT_EQ(p.next(bytes.data() + at, bytes.size() - at, length), State::record);
    EXPECT_EQ(length, n);
    at += length;
  }
  u32 length = 7;
  EXPECT_EQ(p.next(bytes.data() + at, 0, length), State::incomplete);
  EXPECT_EQ(length, 7u);
  EXPECT_FALSE(p.broken());
}

TEST(RecordParser, NeedsAllBytes) {
  const std::vector<u8> bytes = packet(1, 9, 100);
  RecordParser p(100);
  u32 length = 0;
  for (u32 have = 0; have < 100; ++have) {
    // A copy of exactly these bytes, so that a sanitizer sees a look behind them.
    const std::vector<u8> part(bytes.begin(), bytes.begin() + have);
    ASSERT_EQ(p.next(part.data(), have, length), State::incomplete) << have;
    EXPECT_EQ(p.coming(), have < kHeaderBytes ? 0u : 100u);
  }
  EXPECT_EQ(p.next(bytes.data(), 100, length), State::record);
  EXPECT_EQ(p.coming(), 0u);
}

/// The parser's answer to a header that `change` has altered, with a right CRC or the old one.
template <class Fn>
std::string refusal(Fn change, bool seal) {
  std::vector<u8> bytes = packet(1, 9, 100);
  Header h;
  std::memcpy(&h, bytes.data(), sizeof h);
  change(h);
  if (seal) h.header_crc32c = crc32c(&h, offsetof(Header, header_crc32c));
  std::memcpy(bytes.data(), &h, sizeof h);
  RecordParser p(100);
  u32 length = 0;
  const State state = p.next(bytes.data(), bytes.size(), length);
  if (state != State::broken) return "accepted";
  // It stays broken, whatever comes.
  const std::vector<u8> good = packet(1, 9, 100);
  EXPECT_EQ(p.next(good.data(), good.size(), length), State::broken);
  EXPECT_TRUE(p.broken());
  return p.why();
}

TEST(RecordParser, RefusesBrokenHeaders) {
  EXPECT_EQ(refusal([](Header&) {}, true), "accepted");
  EXPECT_EQ(refusal([](Header& h) { h.magic = 0; }, true), "no magic number where a record starts");
  EXPECT_EQ(refusal([](Header& h) { h.version_flags = 2; }, true), "a header of another version");
  EXPECT_EQ(refusal([](Header& h) { h.version_flags = kVersion | kHasDataCrc << 4; }, true), "accepted");
  EXPECT_EQ(refusal([](Header& h) { h.tx_time_ns ^= 1; }, false), "a header whose CRC is wrong");
  EXPECT_EQ(refusal([](Header& h) { h.header_crc32c ^= 1; }, false), "a header whose CRC is wrong");
  EXPECT_EQ(refusal([](Header& h) { h.data_bytes = 69; }, true), "a record longer than the stream's");
  EXPECT_EQ(refusal([](Header& h) { h.data_bytes = ~0u; }, true), "a record longer than the stream's");
  EXPECT_EQ(refusal([](Header& h) { h.data_bytes = 0; }, true), "accepted");
}

}  // namespace
}  // namespace doorbell::net
