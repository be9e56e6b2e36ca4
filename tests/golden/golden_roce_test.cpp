// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// RoCEv2 packets against what tshark read in them: each packet decoded to tshark's fields, and encoded from
// them to the same bytes.

#include <gtest/gtest.h>

#include <bit>

#include "golden/golden.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {
namespace {

using namespace golden;

/// A packet's fields by tshark's names.
Headers headers_of(Keys& in) {
  const auto word = [&in](const char* key) { return static_cast<u32>(in(key)); };
  Headers h;
  const u32 opcode = word("opcode");
  h.service = static_cast<Service>(opcode >> 5);
  h.operation = static_cast<Operation>(opcode & 31);
  h.solicited = in("se") != 0;
  h.migrated = in("m") != 0;
  h.pad = static_cast<u8>(in("padcnt"));
  h.partition = static_cast<u16>(in("p_key"));
  h.queue_pair = word("destqp");
  h.wants_ack = in("a") != 0;
  h.psn = word("psn");
  if (in.has("xrceth.xrcsrq")) h.shared_receives = word("xrceth.xrcsrq");
  if (in.has("deth.q_key")) {
    h.queue_key = word("deth.q_key");
    h.source_queue_pair = word("deth.srcqp");
  }
  if (in.has("reth.va")) {
    h.range.address = in("reth.va");
    h.range.key = word("reth.r_key");
  }
  if (in.has("reth.dmalen")) h.range.length = word("reth.dmalen");
  if (in.has("atomiceth.swapdt")) {
    h.swap_or_add = in("atomiceth.swapdt");
    h.compare = in("atomiceth.cmpdt");
  }
  if (in.has("aeth.syndrome")) {
    const u32 syndrome = word("aeth.syndrome");
    h.ack = {.kind = static_cast<Acknowledge::Kind>(syndrome >> 5),
             .value = static_cast<u8>(syndrome & 31),
             .msn = word("aeth.msn")};
  }
  if (in.has("atomicacketh.origremdt")) h.original = in("atomicacketh.origremdt");
  if (in.has("immdt")) h.immediate = std::byteswap(word("immdt"));
  if (in.has("ieth")) h.invalidate_key = word("ieth");
  return h;
}

TEST(GoldenRoce, PacketsAreReadAndWrittenAsTsharkReadsThem) {
  const json file = read_file("roce");
  std::set<u64> opcodes;
  for (const json& vector : file.at("vectors")) {
    const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
    SCOPED_TRACE(vector.dump());
    Keys in(vector.at("expect"));
    opcodes.insert(in("opcode"));
    const Headers expected = headers_of(in);
    in.expect_all_used("expect");
    Decoded decoded;
    ASSERT_FALSE(decode(bytes, decoded).has_value());
    EXPECT_EQ(decoded.payload.size(), vector.at("payload_bytes").get<std::size_t>());
    EXPECT_EQ(decoded.headers.pad, expected.pad);
    // Both ways round: from tshark's fields, and from those read here.
    for (const Headers& h : {expected, decoded.headers}) {
      Bytes again(kLongestHeaders + decoded.payload.size() + 3, 0);
      const std::size_t headers = encode(h, decoded.payload.size(), again.data());
      std::copy(decoded.payload.begin(), decoded.payload.end(),
                again.begin() + static_cast<std::ptrdiff_t>(headers));
      again.resize(headers + decoded.payload.size() + pad_bytes(decoded.payload.size()));
      EXPECT_EQ(to_hex(again), to_hex(bytes));
    }
  }
  EXPECT_EQ(opcodes.size(), 60u) << "RC and XRC have 23 operations each, UC 12, UD 2";
}

TEST(GoldenRoce, EachPacketCutShortIsRefused) {
  const json file = read_file("roce");
  for (const json& vector : file.at("vectors")) {
    const Bytes bytes = from_hex(vector.at("bytes_hex").get<std::string>());
    Decoded decoded;
    ASSERT_FALSE(decode(bytes, decoded).has_value());
    const std::size_t headers = header_bytes(decoded.shape);
    for (std::size_t size = 0; size < headers; ++size)
      EXPECT_EQ(decode(std::span(bytes).first(size), decoded), DecodeError::short_packet) << size;
    for (std::size_t size = headers; size < bytes.size(); ++size) {
      if ((size - headers) % 4 == 0) continue;
      EXPECT_EQ(decode(std::span(bytes).first(size), decoded), DecodeError::bad_padding) << size;
    }
  }
}

TEST(RoceWire, OperationsOfNoServiceAreRefused) {
  for (int opcode = 0; opcode < 256; ++opcode) {
    Bytes bytes(64, 0);
    bytes[0] = static_cast<u8>(opcode);
    Decoded decoded;
    const auto error = decode(bytes, decoded);
    const int service = opcode >> 5, operation = opcode & 31;
    const bool exists =
        ((service == 0 || service == 5) && ((operation <= 23 && operation != 21) || operation == 29)) ||
        (service == 1 && operation <= 11) || (service == 3 && (operation == 4 || operation == 5));
    EXPECT_EQ(error == DecodeError::unknown_opcode, !exists) << opcode;
    bytes[1] = 1;
    EXPECT_EQ(decode(bytes, decoded), DecodeError::bad_version);
  }
}

TEST(RoceWire, PsnsAreComparedAcrossTheirWrap) {
  EXPECT_EQ(psn_difference(0, kMask24), 1);
  EXPECT_EQ(psn_difference(kMask24, 0), -1);
  EXPECT_EQ(psn_difference(0x7F'FFFF, 0), 0x7F'FFFF);
  EXPECT_EQ(psn_difference(0x80'0000, 0), -0x80'0000);
  EXPECT_EQ(psn_after(kMask24, 2), 1u);
  EXPECT_EQ(packets_of(0, 1024), 1u);
  EXPECT_EQ(packets_of(1024, 1024), 1u);
  EXPECT_EQ(packets_of(1025, 1024), 2u);
}

TEST(RoceWire, TimersAreThoseOfTheSpecification) {
  EXPECT_EQ(rnr_timer_ns(0), 655'360'000u);
  EXPECT_EQ(rnr_timer_ns(1), 10'000u);
  EXPECT_EQ(rnr_timer_ns(12), 640'000u);
  EXPECT_EQ(rnr_timer_ns(25), 61'440'000u);
  EXPECT_EQ(rnr_timer_ns(31), 491'520'000u);
  EXPECT_EQ(timeout_ns(0), 0u);
  EXPECT_EQ(timeout_ns(14), 67'108'864u);
}

}  // namespace
}  // namespace doorbell::roce
