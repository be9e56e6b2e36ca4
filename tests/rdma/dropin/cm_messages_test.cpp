// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Messages of communication management against bytes that Linux sent and read.
#include <gtest/gtest.h>

#include <string_view>

#include "rdma/dropin/cm/messages.hpp"

namespace doorbell::cm {
namespace {

using Bytes = std::array<u8, kMessageBytes>;

/// The rest of the 256 bytes is zeros.
Bytes bytes_of(std::string_view hex) {
  const auto digit = [](char c) { return static_cast<u8>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Bytes bytes{};
  for (std::size_t i = 0; i < hex.size(); ++i)
    bytes[i / 2] = static_cast<u8>(bytes[i / 2] | digit(hex[i]) << (i % 2 == 0 ? 4 : 0));
  return bytes;
}

Bytes encoded(const Message& message) {
  Bytes bytes;
  encode(message, bytes);
  return bytes;
}

Message decoded(std::string_view hex) {
  Message message;
  EXPECT_TRUE(decode(bytes_of(hex), message));
  return message;
}

/// Messages of Linux come out again as they were, and mean what tshark 4.0 says of them.
void same_again(std::string_view hex) {
  EXPECT_EQ(encoded(decoded(hex)), bytes_of(hex));
}

// Captured on soft-RoCE of Linux 6.1 (Debian 12) with its rdma_cm, rping at both ends.
constexpr std::string_view kPatience = "01070203000000008461e10900000000001100000000000032895313d911b91a00c0";
constexpr std::string_view kReply =
    "01070203000000008461e10900000000001300000000000032895313d911b91a"
    "000000000000110000000000404ef200010178e0889978fffe222525";
constexpr std::string_view kDisconnected = "01070203000000008461e10980000000001600000000000032895313d911b91a";

constexpr std::string_view kRequest =
    "0107020300000000000000028c2f845a00100000000000005a842f8c000000000000000001064"
    "8acf4d71ffffe2a0de500000000000000000000110100000001000000a09590e5a7ffff57f0ff"
    "ffffff00000000000000000000ffff0a09000100000000000000000000ffff0a090002b291900"
    "00040009800000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000040ddf30000000000000000000000000a09000100000000000000000"
    "00000000a090002";
constexpr std::string_view kDatagramRequest =
    "0107020300000000000000028c2f8459001700000000000059842f8cffff00000000000001111"
    "c060040bb8a0000000000000000000000000a0900010000000000000000000000000a090002";

TEST(CmMessages, RequestOfLinux) {
  const Message m = decoded(kRequest);
  EXPECT_EQ(m.kind, Kind::request);
  EXPECT_EQ(m.local_id, 0x5A842F8CU);
  EXPECT_EQ(m.service, service_of(0x106, 18604));
  EXPECT_EQ(m.guid, 0xF4D71FFFFE2A0DE5U);
  EXPECT_EQ(m.queue_pair, 0x11U);
  EXPECT_EQ(m.psn, 0x9590E5U);
  EXPECT_EQ(m.responder_resources, 1);
  EXPECT_EQ(m.initiator_depth, 1);
  EXPECT_EQ(m.remote_timeout, 20);
  EXPECT_EQ(m.local_timeout, 20);
  EXPECT_EQ(m.retries, 7);
  EXPECT_EQ(m.rnr_retries, 7);
  EXPECT_EQ(m.message_retries, 15);
  EXPECT_EQ(m.transport, Transport::rc);
  EXPECT_FALSE(m.flow_control);
  EXPECT_FALSE(m.shared_receives);
  EXPECT_EQ(m.partition, 0xFFFF);
  EXPECT_EQ(m.mtu, 5);
  EXPECT_EQ(m.local_gid[15], 1);
  EXPECT_EQ(m.remote_gid[15], 2);
  EXPECT_EQ(m.flow_label, 0xB2919U);
  EXPECT_EQ(m.hop_limit, 64);
  EXPECT_EQ(m.ack_timeout, 19);
  const auto header = address_header(m.private_data);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->port, 0xDDF3);
  EXPECT_EQ(header->source, 0x0A090001U);
  EXPECT_EQ(header->destination, 0x0A090002U);
  same_again(kRequest);
}

TEST(CmMessages, DatagramRequestOfLinux) {
  const Message m = decoded(kDatagramRequest);
  EXPECT_EQ(m.kind, Kind::datagram_request);
  EXPECT_EQ(m.remote_id, 0x59842F8CU);
  EXPECT_EQ(m.service, service_of(0x111, 7174));
  const auto header = address_header(m.private_data);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->port, 0xBB8A);
  EXPECT_EQ(header->source, 0x0A090001U);
  same_again(kDatagramRequest);
}

TEST(CmMessages, ReplyOfLinux) {
  const Message m = decoded(kReply);
  EXPECT_EQ(m.kind, Kind::reply);
  EXPECT_EQ(m.transaction, 0x8461E10900000000U);
  EXPECT_EQ(m.local_id, 0x32895313U);
  EXPECT_EQ(m.remote_id, 0xD911B91AU);
  EXPECT_EQ(m.queue_pair, 0x11U);
  EXPECT_EQ(m.psn, 0x404EF2U);
  EXPECT_EQ(m.responder_resources, 1);
  EXPECT_EQ(m.initiator_depth, 1);
  EXPECT_EQ(m.ack_delay, 15);
  EXPECT_EQ(m.rnr_retries, 7);
  EXPECT_EQ(m.guid, 0x889978FFFE222525U);
  same_again(kReply);
}

TEST(CmMessages, PatienceAndDisconnectedOfLinux) {
  const Message m = decoded(kPatience);
  EXPECT_EQ(m.kind, Kind::patience);
  EXPECT_EQ(m.about, About::request);
  EXPECT_EQ(m.service_timeout, 24);
  same_again(kPatience);
  EXPECT_EQ(decoded(kDisconnected).kind, Kind::disconnected);
  same_again(kDisconnected);
}

TEST(CmMessages, EachKindComesOutAsItWentIn) {
  for (u16 kind = 0x10; kind <= 0x18; ++kind) {
    Message m;
    m.kind = static_cast<Kind>(kind);
    m.transaction = 0x0102030405060708;
    m.remote_id = 0x21222324;
    for (std::size_t i = 0; i < private_bytes(m.kind); ++i) m.private_data[i] = static_cast<u8>(i + 1);
    const Bytes bytes = encoded(m);
    Message back;
    ASSERT_TRUE(decode(bytes, back));
    EXPECT_EQ(back.kind, m.kind);
    EXPECT_EQ(back.transaction, m.transaction);
    EXPECT_EQ(back.private_data, m.private_data);
    EXPECT_EQ(encoded(back), bytes);
    // The private data end where the message does.
    EXPECT_EQ(bytes.back(), static_cast<u8>(private_bytes(m.kind)));
  }
}

TEST(CmMessages, OtherBytesAreNoMessages) {
  const Bytes good = encoded({});
  Message message;
  ASSERT_TRUE(decode(good, message));
  EXPECT_FALSE(decode(std::span(good).first(kMessageBytes - 1), message));
  // Base version, class, class version, method, attribute.
  for (const std::size_t at : {0, 1, 2, 3, 16}) {
    Bytes bad = good;
    bad[at] ^= 0x40;
    EXPECT_FALSE(decode(bad, message)) << at;
  }
  Bytes bad = good;
  for (int attribute = 0; attribute < 256; ++attribute) {
    bad[17] = static_cast<u8>(attribute);
    EXPECT_EQ(decode(bad, message), attribute >= 0x10 && attribute <= 0x18) << attribute;
  }
}

TEST(CmMessages, LengthsInMessagesAreLimited) {
  Message m;
  m.kind = Kind::reject;
  Bytes bytes = encoded(m);
  bytes[24 + 9] = 0xFF;
  Message back;
  ASSERT_TRUE(decode(bytes, back));
  EXPECT_LE(back.info_bytes, back.info.size());
  m.kind = Kind::datagram_reply;
  bytes = encoded(m);
  bytes[24 + 5] = 0xFF;
  ASSERT_TRUE(decode(bytes, back));
  EXPECT_LE(back.info_bytes, back.info.size());
}

TEST(CmMessages, AddressHeaderOfAnotherVersionOrFamilyIsNone) {
  std::array<u8, AddressHeader::kBytes> bytes{};
  put({.port = 0x1234, .source = 0x0A090001, .destination = 0x0A090002}, bytes);
  const auto header = address_header(bytes);
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->port, 0x1234);
  EXPECT_EQ(header->source, 0x0A090001U);
  EXPECT_EQ(header->destination, 0x0A090002U);
  bytes[1] = 0x60;
  EXPECT_FALSE(address_header(bytes));
  bytes[1] = 0x40;
  bytes[0] = 0x10;
  EXPECT_FALSE(address_header(bytes));
  EXPECT_FALSE(address_header(std::span(bytes).first(AddressHeader::kBytes - 1)));
}

TEST(CmMessages, PortsAreServices) {
  EXPECT_EQ(service_of(0x106, 7174), 0x0000000001061C06U);
  EXPECT_EQ(service_of(0x111, 0xFFFF), 0x000000000111FFFFU);
}

}  // namespace
}  // namespace doorbell::cm
