// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/frames.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "golden/golden.hpp"

namespace doorbell::net::raw {
namespace {

using Kind = Decoded::Kind;

FlowAddress sample_address() {
  FlowAddress a;
  a.source_mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55},
  a.destination_mac = {0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee};
  a.source_ip = 0xc0000201, a.destination_ip = 0xc0000202;
  a.source_port = 18600, a.destination_port = 18601;
  return a;
}

/// In an allocation of just its size, so that AddressSanitizer sees a look beyond it.
Decoded decoded(const std::vector<u8>& frame) {
  const auto exact = std::make_unique<u8[]>(frame.size());
  std::copy(frame.begin(), frame.end(), exact.get());
  return decode(exact.get(), frame.size());
}

std::vector<u8> sample_frame(u32 payload = 100) {
  std::vector<u8> f(kUdp4Bytes + payload, 0xee);
  encode_udp4(sample_address(), payload, f.data());
  return f;
}

/// Makes the IPv4 header at `at` whole again after a change.
void repair_checksum(std::vector<u8>* f, u32 at = kEthernetBytes) {
  const u32 bytes = ((*f)[at] & 15u) * 4;
  (*f)[at + 10] = (*f)[at + 11] = 0;
  const u16 sum = internet_checksum(f->data() + at, bytes);
  (*f)[at + 10] = static_cast<u8>(sum >> 8), (*f)[at + 11] = static_cast<u8>(sum);
}

TEST(Frames, TheChecksumIsThatOfRfc1071) {
  // The RFC's example: the sum of these is 0xddf2.
  const u8 bytes[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(internet_checksum(bytes, 8), static_cast<u16>(~0xddf2));
}

TEST(Frames, HeadersAreThoseOfTheStandards) {
  EXPECT_EQ(golden::to_hex(sample_frame(32)).substr(0, 2 * kUdp4Bytes),
            "02aabbccddee"
            "021122334455"
            "0800"
            "4500003c0000400040"
            "11"
            "b6ad"
            "c0000201"
            "c0000202"
            "48a8"
            "48a9"
            "0028"
            "0000");
}

TEST(Frames, UdpOverIpv6HasTheChecksumOfRfc8200) {
  FlowAddress a = sample_address();
  a.encapsulation = Encapsulation::udp6;
  a.source_ip6 = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  a.destination_ip6 = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
  for (const u32 payload : {0u, 1u, 2u, 3u, 40u, 41u, 8000u, 65507u}) {
    std::vector<u8> f(kUdp6Bytes + payload);
    for (u32 i = 0; i < payload; ++i) f[kUdp6Bytes + i] = static_cast<u8>(i * 7 + payload);
    encode(a, payload, f.data());
    checksum_udp6(f.data(), payload);
    const Decoded d = decoded(f);
    ASSERT_EQ(d.kind, Kind::udp6) << payload;
    EXPECT_EQ(d.payload_offset, kUdp6Bytes);
    EXPECT_EQ(d.payload_bytes, payload);
    EXPECT_EQ(d.source_port, 18600);
    EXPECT_EQ(d.destination_port, 18601);
    // The pseudo header with the datagram behind it adds up to all ones, as the RFC defines it, byte by byte.
    std::vector<u8> all(f.begin() + kEthernetBytes + 8, f.begin() + kEthernetBytes + 40);
    const u32 bytes = 8 + payload;
    for (const u32 shift : {24, 16, 8, 0}) all.push_back(static_cast<u8>(bytes >> shift));
    all.insert(all.end(), {0, 0, 0, 17});
    all.insert(all.end(), f.begin() + kEthernetBytes + 40, f.end());
    if (all.size() % 2 != 0) all.push_back(0);
    EXPECT_EQ(internet_checksum(all.data(), static_cast<u32>(all.size())), 0) << payload;
    EXPECT_TRUE(f[60] != 0 || f[61] != 0);
  }
  // Worked out by hand: two addresses, ports and lengths, no payload.
  std::vector<u8> f(kUdp6Bytes);
  encode(a, 0, f.data());
  checksum_udp6(f.data(), 0);
  EXPECT_EQ(golden::to_hex(f).substr(2 * kEthernetBytes),
            "6000000000081140"
            "20010db8000000000000000000000001"
            "20010db8000000000000000000000002"
            "48a8"
            "48a9"
            "0008"
            "1318");
}

TEST(Frames, UdpChecksumsAreVerified) {
  FlowAddress a = sample_address();
  for (const Encapsulation e : {Encapsulation::udp4, Encapsulation::udp6})
    for (const u32 payload : {0u, 1u, 2u, 33u, 1000u, 8001u}) {
      SCOPED_TRACE(payload);
      a.encapsulation = e;
      const u32 headers = header_bytes(e);
      std::vector<u8> f(headers + payload);
      for (u32 i = 0; i < payload; ++i) f[headers + i] = static_cast<u8>(i * 7 + payload);
      encode(a, payload, f.data());
      EXPECT_TRUE(checksum_good(f.data(), decoded(f))) << "there is none";
      // The right one, by the pseudo header as a whole.
      const Decoded d = decoded(f);
      const u32 addresses = e == Encapsulation::udp4 ? 8 : 32;
      std::vector<u8> all(f.begin() + d.address_offset, f.begin() + d.address_offset + addresses);
      const u32 bytes = 8 + payload;
      all.insert(all.end(), {0, 17, static_cast<u8>(bytes >> 8), static_cast<u8>(bytes)});
      const std::vector<u8> pseudo = all;
      all.insert(all.end(), f.begin() + d.ports_offset, f.end());
      if (all.size() % 2 != 0) all.push_back(0);
      const u16 right = internet_checksum(all.data(), static_cast<u32>(all.size()));
      const auto set = [&](u16 checksum) {
        f[headers - 2] = static_cast<u8>(checksum >> 8), f[headers - 1] = static_cast<u8>(checksum);
      };
      set(right);
      EXPECT_TRUE(checksum_good(f.data(), decoded(f)));
      for (const u32 first : {1u, 2u, 13u}) {
        UdpChecksum parts(f.data(), decoded(f));
        for (u32 at = 0, n = first; at < payload; at += n, n = n * 2 + 1)
          parts.add(f.data() + headers + at, std::min(n, payload - at));
        EXPECT_TRUE(parts.good()) << first;
      }
      for (const u32 at : {headers - 8, headers + payload / 2, headers + payload - 1}) {
        if (at >= f.size() || (at >= headers && payload == 0)) continue;
        f[at] ^= 0x40;
        EXPECT_FALSE(checksum_good(f.data(), decoded(f))) << at;
        f[at] ^= 0x40;
      }
      // An interface was to complete it.
      set(static_cast<u16>(~internet_checksum(pseudo.data(), static_cast<u32>(pseudo.size()))));
      EXPECT_TRUE(checksum_good(f.data(), decoded(f)));
    }
}

TEST(Frames, APayloadAtASlotsLineIsAligned) {
  EXPECT_EQ(kFrameOffset + kUdp4Bytes, 64u);
  EXPECT_EQ(kBareOffset + kEthernetBytes, 64u);
  EXPECT_EQ((kPayloadOffset + kHeaderBytes) % 16, 0u);
}

TEST(Frames, WhatIsEncodedIsDecoded) {
  for (const u32 payload : {0u, 1u, 32u, 8000u, 65507u}) {
    const Decoded d = decoded(sample_frame(payload));
    ASSERT_EQ(d.kind, Kind::udp4) << payload;
    EXPECT_EQ(d.payload_offset, kUdp4Bytes);
    EXPECT_EQ(d.payload_bytes, payload);
    EXPECT_EQ(d.source_ip, 0xc0000201u);
    EXPECT_EQ(d.destination_ip, 0xc0000202u);
    EXPECT_EQ(d.source_port, 18600);
    EXPECT_EQ(d.destination_port, 18601);
    EXPECT_EQ(d.vlan_tags, 0);
  }
}

TEST(Frames, PaddingIsNotPayload) {
  std::vector<u8> f = sample_frame(4);
  f.resize(60);
  EXPECT_EQ(decoded(f).payload_bytes, 4u);
}

TEST(Frames, ACutFrameIsUnmatchedAtEveryLength) {
  const std::vector<u8> whole = sample_frame(20);
  for (std::size_t n = 0; n < whole.size(); ++n)
    ASSERT_EQ(decoded({whole.begin(), whole.begin() + static_cast<long>(n)}).kind, Kind::unmatched) << n;
}

TEST(Frames, VlanTagsAreUnderstood) {
  for (const u32 tags : {1u, 2u, 3u}) {
    std::vector<u8> f = sample_frame(20);
    for (u32 i = 0; i < tags; ++i) {
      const u8 tag[] = {0x81, 0x00, 0x60, static_cast<u8>(i + 1)};  // priority 3
      f.insert(f.begin() + 12, tag, tag + 4);
    }
    const Decoded d = decoded(f);
    if (tags == 3) {
      EXPECT_EQ(d.kind, Kind::unmatched);
      continue;
    }
    EXPECT_EQ(d.kind, Kind::udp4);
    EXPECT_EQ(d.vlan_tags, tags);
    EXPECT_EQ(d.vlan, tags);  // the outermost was put in last
    EXPECT_EQ(d.payload_offset, kUdp4Bytes + 4 * tags);
    for (std::size_t n = 12; n < f.size(); ++n)
      ASSERT_EQ(decoded({f.begin(), f.begin() + static_cast<long>(n)}).kind, Kind::unmatched) << n;
  }
}

TEST(Frames, Ipv4OptionsAreSkipped) {
  std::vector<u8> f = sample_frame(20);
  f.insert(f.begin() + kEthernetBytes + 20, 8, 1);  // no-operation options
  f[kEthernetBytes] = 0x47;
  f[kEthernetBytes + 3] = static_cast<u8>(f[kEthernetBytes + 3] + 8);
  repair_checksum(&f);
  const Decoded d = decoded(f);
  EXPECT_EQ(d.kind, Kind::udp4);
  EXPECT_EQ(d.payload_offset, kUdp4Bytes + 8);
  EXPECT_EQ(d.payload_bytes, 20u);
  EXPECT_EQ(d.source_port, 18600);
}

TEST(Frames, WhatIsNoWholeUdpPacketIsUnmatched) {
  struct Change {
    const char* what;
    u32 at;
    u8 value;
  };
  const Change changes[] = {
      {"version 6 behind IPv4's type", kEthernetBytes, 0x65},
      {"a header of 16 bytes", kEthernetBytes, 0x44},
      {"a header of 60 bytes that ends in the payload", kEthernetBytes, 0x4f},
      {"a total length beyond the frame", kEthernetBytes + 2, 0x30},
      {"more fragments follow", kEthernetBytes + 6, 0x20},
      {"a fragment's offset", kEthernetBytes + 7, 1},
      {"TCP", kEthernetBytes + 9, 6},
      {"a UDP length beyond the packet", kEthernetBytes + 20 + 4, 1},
      {"a UDP length below its header", kEthernetBytes + 20 + 5, 7},
      {"ARP", 13, 6},
  };
  for (const Change& c : changes) {
    std::vector<u8> f = sample_frame(20);
    f[c.at] = c.value;
    if ((f[kEthernetBytes] & 15) >= 5 && (f[kEthernetBytes] & 15) * 4u < 40) repair_checksum(&f);
    EXPECT_EQ(decoded(f).kind, Kind::unmatched) << c.what;
  }
  std::vector<u8> f = sample_frame(20);
  f[kEthernetBytes + 8] ^= 1;
  EXPECT_EQ(decoded(f).kind, Kind::unmatched) << "a checksum that does not agree";
}

/// Frames of three kinds, some with one byte changed, each several times in a row and then the others.
TEST(Frames, ADecoderSaysTheSameOfEachFrame) {
  std::vector<std::vector<u8>> frames = {sample_frame(), sample_frame(101), std::vector<u8>(kUdp6Bytes + 60),
                                         std::vector<u8>(60, 1), std::vector<u8>(kUdp4Bytes, 0)};
  encode_udp6(sample_address(), 60, frames[2].data());
  encode_bare(sample_address(), frames[3].data());
  for (u32 at = 0; at < kUdp4Bytes + 4; ++at) {
    frames.push_back(sample_frame());
    frames.back()[at] ^= 0x10;
  }
  const std::vector<u8> plain = frames[0];
  auto tagged = plain, with_options = plain;
  tagged.insert(tagged.begin() + 12, {0x81, 0, 0, 5});
  ASSERT_EQ(decode(tagged.data(), tagged.size()).vlan, 5);
  with_options.insert(with_options.begin() + 34, {1, 1, 1, 1});
  ++with_options[14];
  frames.insert(frames.end(), {tagged, with_options, std::vector<u8>(plain.begin(), plain.begin() + 41), {}});
  Decoder decoder;
  u32 repeated = 0;
  for (u32 i = 0; i < 20 * frames.size(); ++i) {
    // Others begin as this one does: in between comes the frame without a change.
    for (const auto& f : {frames[i % frames.size()], frames[i % frames.size()], frames[0]}) {
      repeated += decoder.same(f.data(), f.size()) ? 1 : 0;
      const Decoded want = decode(f.data(), f.size());
      const Decoded& got = decoder.decode(f.data(), f.size());
      ASSERT_EQ(got.kind, want.kind) << i;
      ASSERT_EQ(got.payload_offset, want.payload_offset);
      ASSERT_EQ(got.payload_bytes, want.payload_bytes);
      ASSERT_EQ(got.source_ip, want.source_ip);
      ASSERT_EQ(got.destination_ip, want.destination_ip);
      ASSERT_EQ(got.destination_port, want.destination_port);
      ASSERT_EQ(got.source_port, want.source_port);
      ASSERT_EQ(got.vlan, want.vlan);
      ASSERT_EQ(&decoder.last(), &got);
    }
  }
  EXPECT_GT(repeated, frames.size());
}

TEST(Frames, Ipv6AndBareFramesAreDecoded) {
  std::vector<u8> f(kEthernetBytes + 40 + 8 + 20);
  f[12] = 0x86, f[13] = 0xdd;
  u8* const ip = f.data() + kEthernetBytes;
  ip[0] = 0x60, ip[5] = 28, ip[6] = kUdpProtocol;
  ip[40] = 1, ip[41] = 2, ip[42] = 3, ip[43] = 4, ip[45] = 28;
  Decoded d = decoded(f);
  EXPECT_EQ(d.kind, Kind::udp6);
  EXPECT_EQ(d.address_offset, kEthernetBytes + 8);
  EXPECT_EQ(d.source_port, 0x0102);
  EXPECT_EQ(d.destination_port, 0x0304);
  EXPECT_EQ(d.payload_offset, kEthernetBytes + 48);
  EXPECT_EQ(d.payload_bytes, 20u);
  for (std::size_t n = 0; n < f.size(); ++n)
    ASSERT_EQ(decoded({f.begin(), f.begin() + static_cast<long>(n)}).kind, Kind::unmatched) << n;
  ip[6] = 0;  // hop-by-hop options
  EXPECT_EQ(decoded(f).kind, Kind::unmatched);

  std::vector<u8> bare(kEthernetBytes + 50);
  encode_bare(sample_address(), bare.data());
  EXPECT_EQ(golden::to_hex(bare).substr(0, 28), "02aabbccddee02112233445588b5");
  d = decoded(bare);
  EXPECT_EQ(d.kind, Kind::bare);
  EXPECT_EQ(d.payload_offset, kEthernetBytes);
  EXPECT_EQ(d.payload_bytes, 50u);
}

}  // namespace
}  // namespace doorbell::net::raw
