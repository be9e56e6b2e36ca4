// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ethernet frames around a payload: what raw streams send, and what is found in a received frame.
//
// A frame begins at slot + kFrameOffset, so that its payload lies at 64 and the data behind the payload's
// 32-byte header at 96: aligned for vector loads. Frames that a driver copies as a whole begin at the slot.
#pragma once

#include <doorbell/net/packet.hpp>
#include <doorbell/net/stream_request.hpp>

#include <array>
#include <cstring>

#include "net/link.hpp"

namespace doorbell::net::raw {

inline constexpr u32 kEthernetBytes = 14;
/// Ethernet, IPv4 without options, UDP.
inline constexpr u32 kUdp4Bytes = 42;
/// Ethernet, IPv6 without extension headers, UDP.
inline constexpr u32 kUdp6Bytes = 62;
inline constexpr u32 kPayloadOffset = 64;
inline constexpr u32 kFrameOffset = kPayloadOffset - kUdp4Bytes;
inline constexpr u32 kBareOffset = kPayloadOffset - kEthernetBytes;
inline constexpr u16 kIpv4Type = 0x0800;
inline constexpr u16 kIpv6Type = 0x86dd;
/// IEEE 802 local experimental EtherType 1: a payload directly behind Ethernet's header.
inline constexpr u16 kBareType = 0x88b5;
inline constexpr u8 kUdpProtocol = 17;

/// Bytes in front of a payload.
[[nodiscard]] constexpr u32 header_bytes(Encapsulation e) {
  return e == Encapsulation::udp4 ? kUdp4Bytes : e == Encapsulation::udp6 ? kUdp6Bytes : kEthernetBytes;
}
/// Where a bare frame's payload has the flow's number, which its header begins with: little endian.
inline constexpr u32 kFlowOffset = 14;

using Ip6 = std::array<u8, 16>;

/// Where a flow's packets come from and go to. IPv4 addresses as numbers: 192.0.2.1 is 0xc0000201.
struct FlowAddress {
  Encapsulation encapsulation = Encapsulation::udp4;
  u16 flow = 0;
  Mac source_mac{}, destination_mac{};
  u32 source_ip = 0, destination_ip = 0;
  Ip6 source_ip6{}, destination_ip6{};
  u16 source_port = 0, destination_port = 0;
};

/// Writes the kUdp4Bytes in front of a payload of `payload_bytes` (at most 65507). The UDP checksum is 0,
/// which means none: the payload has CRCs of its own.
void encode_udp4(const FlowAddress& address, u32 payload_bytes, u8* out);
/// Writes the kUdp6Bytes; the checksum is 0 until checksum_udp6() has been called.
void encode_udp6(const FlowAddress& address, u32 payload_bytes, u8* out);
/// Computes the checksum of a UDP datagram over IPv6 whose payload is there.
void checksum_udp6(u8* frame, u32 payload_bytes);
/// Writes the kEthernetBytes in front of a payload without IP.
void encode_bare(const FlowAddress& address, u8* out);
/// The header_bytes() of the address's own encapsulation.
void encode(const FlowAddress& address, u32 payload_bytes, u8* out);

/// The Internet checksum (RFC 1071) of `n` bytes, an even number; 0 over a header that contains a right one.
[[nodiscard]] u16 internet_checksum(const u8* bytes, u32 n);

struct Decoded {
  /// `unmatched`: another protocol, a fragment, or a frame whose lengths or IPv4 checksum are wrong.
  enum class Kind : u8 { unmatched, udp4, udp6, bare };
  Kind kind = Kind::unmatched;
  u8 vlan_tags = 0;
  u16 vlan = 0;            ///< the outermost tag's id
  u32 address_offset = 0;  ///< of the source address in the frame; the destination's follows it
  u32 ports_offset = 0;    ///< of the source port
  u32 payload_offset = 0;
  u32 payload_bytes = 0;                  ///< of bare frames with what Ethernet has padded
  u32 source_ip = 0, destination_ip = 0;  ///< IPv4 only
  u16 source_port = 0, destination_port = 0;
  u16 udp_checksum = 0;  ///< 0: there is none
  /// Whether it is of this encapsulation.
  [[nodiscard]] bool is(Encapsulation e) const {
    return kind == (e == Encapsulation::udp4   ? Kind::udp4
                    : e == Encapsulation::udp6 ? Kind::udp6
                                               : Kind::bare);
  }
};

/// Looks at `n` bytes of a frame without its FCS and never beyond them. Up to two VLAN tags and IPv4 options
/// are understood; IPv6 extension headers are not.
[[nodiscard]] Decoded decode(const u8* frame, u64 n);

/// Verifies the checksum of a UDP datagram, whose payload may lie in several parts.
class UdpChecksum {
 public:
  /// Of a frame whose headers lie at `frame`.
  UdpChecksum(const u8* frame, const Decoded& d);
  void add(const u8* payload, u32 n);
  /// Behind the last part. What has been sent on this machine may still wait for an interface to complete its
  /// checksum, and has the sum of the pseudo header there.
  [[nodiscard]] bool good() const;

 private:
  u16 field_;  ///< in the order of the wire, as the sums
  u64 pseudo_, sum_;
  bool odd_ = false;  ///< an odd number of bytes has been added
};

/// Whether the frame has no UDP checksum or a right one. `frame` holds all of it.
[[nodiscard]] inline bool checksum_good(const u8* frame, const Decoded& d) {
  if (d.udp_checksum == 0) return true;
  UdpChecksum sum(frame, d);
  sum.add(frame + d.payload_offset, d.payload_bytes);
  return sum.good();
}

/// Decodes one frame after another. Those of a flow mostly have the same UDP over IPv4 headers, so that what
/// the last ones said is kept.
class Decoder {
 public:
  /// Whether the frame has the headers and the length of the last one.
  [[nodiscard]] bool same(const u8* frame, u64 n) const {
    if (n != n_) return false;
    // By words: a call of memcmp() takes longer than the rest.
    static_assert(kUdp4Bytes == 5 * 8 + 2);
    const auto differs = [&](u32 at) {
      u64 a, b;
      std::memcpy(&a, frame + at, 8);
      std::memcpy(&b, headers_.data() + at, 8);
      return a ^ b;
    };
    return (differs(0) | differs(8) | differs(16) | differs(24) | differs(32) | differs(34)) == 0;
  }
  [[nodiscard]] const Decoded& last() const { return last_; }
  /// As the function; what it returns lasts until the next call.
  const Decoded& decode(const u8* frame, u64 n) {
    if (same(frame, n)) return last_;
    last_ = raw::decode(frame, n);
    const bool plain = last_.kind == Decoded::Kind::udp4 && last_.payload_offset == kUdp4Bytes;
    n_ = plain ? n : kNone;
    if (plain) std::memcpy(headers_.data(), frame, kUdp4Bytes);
    return last_;
  }

 private:
  std::array<u8, kUdp4Bytes> headers_{};
  static constexpr u64 kNone = ~u64{0};
  u64 n_ = kNone;  ///< bytes of the frame that began with them; kNone: none did
  Decoded last_;
};

}  // namespace doorbell::net::raw
