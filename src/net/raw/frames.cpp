// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/frames.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace doorbell::net::raw {

namespace {

constexpr u16 kVlanType = 0x8100, kServiceVlanType = 0x88a8;
constexpr u32 kIpv4Bytes = 20, kIpv6Bytes = 40, kUdpBytes = 8;

u16 read16(const u8* p) {
  return static_cast<u16>(p[0] << 8 | p[1]);
}
u32 read32(const u8* p) {
  return static_cast<u32>(read16(p)) << 16 | read16(p + 2);
}
void write16(u8* p, u32 v) {
  p[0] = static_cast<u8>(v >> 8), p[1] = static_cast<u8>(v);
}
void write32(u8* p, u32 v) {
  write16(p, v >> 16), write16(p + 2, v);
}

/// The sum of 32-bit words as this machine reads them, the last one filled up with zeros. Their order does
/// not matter to the Internet checksum (RFC 1071), nor does that of their bytes once it is stored as it is.
u64 sum_of_words(const u8* p, u32 n) {
  u64 sum = 0;
  u32 word = 0;
  for (; n >= 4; p += 4, n -= 4) {
    std::memcpy(&word, p, 4);
    sum += word;
  }
  word = 0;
  std::memcpy(&word, p, n);
  return sum + word;
}

/// The sum when carries are added at its other end.
u32 folded(u64 sum) {
  sum = (sum & 0xffffffff) + (sum >> 32);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<u32>(sum);
}

void encode_ethernet(const FlowAddress& a, u16 type, u8* out) {
  std::copy(a.destination_mac.begin(), a.destination_mac.end(), out);
  std::copy(a.source_mac.begin(), a.source_mac.end(), out + 6);
  write16(out + 12, type);
}

/// The UDP header at `at`, whose datagram the IP header says to be `ip_payload` bytes.
void decode_udp(const u8* frame, u64 at, u64 ip_payload, Decoded::Kind kind, Decoded* d) {
  if (ip_payload < kUdpBytes) return;
  const u32 bytes = read16(frame + at + 4);
  if (bytes < kUdpBytes || bytes > ip_payload) return;
  d->ports_offset = static_cast<u32>(at);
  d->source_port = read16(frame + at);
  d->destination_port = read16(frame + at + 2);
  d->payload_offset = static_cast<u32>(at + kUdpBytes);
  d->payload_bytes = bytes - kUdpBytes;
  d->udp_checksum = read16(frame + at + 6);
  d->kind = kind;
}

void decode_ipv4(const u8* frame, u64 at, u64 n, Decoded* d) {
  if (n - at < kIpv4Bytes || frame[at] >> 4 != 4) return;
  const u32 header = (frame[at] & 15u) * 4, total = read16(frame + at + 2);
  if (header < kIpv4Bytes || total < header || total > n - at) return;
  const u16 fragment = read16(frame + at + 6);
  if ((fragment & 0x3fff) != 0 || frame[at + 9] != kUdpProtocol) return;  // more fragments, or an offset
  if (internet_checksum(frame + at, header) != 0) return;
  d->address_offset = static_cast<u32>(at + 12);
  d->source_ip = read32(frame + at + 12);
  d->destination_ip = read32(frame + at + 16);
  decode_udp(frame, at + header, total - header, Decoded::Kind::udp4, d);
}

void decode_ipv6(const u8* frame, u64 at, u64 n, Decoded* d) {
  if (n - at < kIpv6Bytes || frame[at] >> 4 != 6) return;
  const u32 bytes = read16(frame + at + 4);
  if (bytes > n - at - kIpv6Bytes || frame[at + 6] != kUdpProtocol) return;
  d->address_offset = static_cast<u32>(at + 8);
  decode_udp(frame, at + kIpv6Bytes, bytes, Decoded::Kind::udp6, d);
}

}  // namespace

u16 internet_checksum(const u8* bytes, u32 n) {
  static_assert(std::endian::native == std::endian::little);
  return __builtin_bswap16(static_cast<u16>(~folded(sum_of_words(bytes, n))));
}

void encode_udp4(const FlowAddress& address, u32 payload_bytes, u8* out) {
  encode_ethernet(address, kIpv4Type, out);
  u8* const ip = out + kEthernetBytes;
  ip[0] = 0x45;  // version 4, five words
  ip[1] = 0;
  write16(ip + 2, kIpv4Bytes + kUdpBytes + payload_bytes);
  write16(ip + 4, 0);       // identification: no fragment needs one
  write16(ip + 6, 0x4000);  // do not fragment
  ip[8] = 64;               // hops
  ip[9] = kUdpProtocol;
  write16(ip + 10, 0);
  write32(ip + 12, address.source_ip);
  write32(ip + 16, address.destination_ip);
  write16(ip + 10, internet_checksum(ip, kIpv4Bytes));
  u8* const udp = ip + kIpv4Bytes;
  write16(udp, address.source_port);
  write16(udp + 2, address.destination_port);
  write16(udp + 4, kUdpBytes + payload_bytes);
  write16(udp + 6, 0);
}

void encode_udp6(const FlowAddress& address, u32 payload_bytes, u8* out) {
  encode_ethernet(address, kIpv6Type, out);
  u8* const ip = out + kEthernetBytes;
  write32(ip, 0x60000000);  // version 6
  write16(ip + 4, kUdpBytes + payload_bytes);
  ip[6] = kUdpProtocol;
  ip[7] = 64;  // hops
  std::ranges::copy(address.source_ip6, ip + 8);
  std::ranges::copy(address.destination_ip6, ip + 24);
  u8* const udp = ip + kIpv6Bytes;
  write16(udp, address.source_port);
  write16(udp + 2, address.destination_port);
  write16(udp + 4, kUdpBytes + payload_bytes);
  write16(udp + 6, 0);
}

void checksum_udp6(u8* frame, u32 payload_bytes) {
  u8* const udp = frame + kEthernetBytes + kIpv6Bytes;
  write16(udp + 6, 0);
  // The pseudo header of RFC 8200, section 8.1: both addresses, the length, the protocol.
  u64 sum = sum_of_words(frame + kEthernetBytes + 8, 32) + sum_of_words(udp, kUdpBytes + payload_bytes);
  sum += __builtin_bswap32(kUdpBytes + payload_bytes) + u64{__builtin_bswap32(kUdpProtocol)};
  const u32 once = folded(sum);
  const u16 checksum = once == 0xffff ? 0xffff : static_cast<u16>(~once);  // 0 would say that there is none
  std::memcpy(udp + 6, &checksum, 2);
}

UdpChecksum::UdpChecksum(const u8* frame, const Decoded& d) {
  const u8* const udp = frame + d.ports_offset;
  const u32 addresses = d.kind == Decoded::Kind::udp4 ? 8 : 32;
  std::memcpy(&field_, udp + 6, 2);
  pseudo_ = sum_of_words(frame + d.address_offset, addresses) +
            __builtin_bswap32(kUdpBytes + d.payload_bytes) + u64{__builtin_bswap32(kUdpProtocol)};
  sum_ = pseudo_ + sum_of_words(udp, kUdpBytes);
}

void UdpChecksum::add(const u8* payload, u32 n) {
  const u32 part = folded(sum_of_words(payload, n));
  // Behind an odd number of bytes each one has the other place of its pair.
  sum_ += odd_ ? (part >> 8 | (part & 0xff) << 8) : part;
  odd_ = odd_ != (n % 2 != 0);
}

bool UdpChecksum::good() const {
  return folded(sum_) == 0xffff || folded(pseudo_) == field_;
}

void encode_bare(const FlowAddress& address, u8* out) {
  encode_ethernet(address, kBareType, out);
}

void encode(const FlowAddress& address, u32 payload_bytes, u8* out) {
  switch (address.encapsulation) {
    case Encapsulation::udp4:
      return encode_udp4(address, payload_bytes, out);
    case Encapsulation::udp6:
      return encode_udp6(address, payload_bytes, out);
    case Encapsulation::bare:
      return encode_bare(address, out);
  }
}

Decoded decode(const u8* frame, u64 n) {
  Decoded d;
  if (n < kEthernetBytes) return d;
  u64 at = kEthernetBytes;
  u16 type = read16(frame + 12);
  for (; (type == kVlanType || type == kServiceVlanType) && d.vlan_tags < 2; at += 4) {
    if (n - at < 4) return d;
    if (d.vlan_tags == 0) d.vlan = read16(frame + at) & 0xfff;
    ++d.vlan_tags;
    type = read16(frame + at + 2);
  }
  if (type == kIpv4Type) {
    decode_ipv4(frame, at, n, &d);
  } else if (type == kIpv6Type) {
    decode_ipv6(frame, at, n, &d);
  } else if (type == kBareType) {
    d.kind = Decoded::Kind::bare;
    d.payload_offset = static_cast<u32>(at);
    d.payload_bytes = static_cast<u32>(n - at);
  }
  return d;
}

}  // namespace doorbell::net::raw
