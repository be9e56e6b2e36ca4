// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/icrc.hpp"

#include <isa-l/crc.h>

#include <array>
#include <cstring>

#include "rdma/roce/big_endian.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {

namespace {

constexpr std::size_t kBth = 12;
constexpr std::size_t kLinkHeader = 8;  // ones in place of InfiniBand's link header

// Bytes of IPv4's header behind its identification.
constexpr std::size_t kBehindIdentification = 14;

/// The headers with zeros in place of both checksums.
void put_headers(const Route& route, std::size_t bytes, u16 identification, u8* out) {
  const u32 length = static_cast<u32>(bytes + kOuterHeaders);
  out[0] = 0x45;
  out[1] = 0;
  store<2>(out + 2, length);
  store<2>(out + 4, identification);
  store<2>(out + 6, 0x4000);  // do not fragment
  out[8] = 64;
  out[9] = 17;  // UDP
  store<2>(out + 10, 0);
  store<4>(out + 12, route.source.address);
  store<4>(out + 16, route.destination.address);
  store<2>(out + 20, route.source.port);
  store<2>(out + 22, route.destination.port);
  store<2>(out + 24, length - 20);
  store<2>(out + 26, 0);
}

// Polynomials modulo that of CRC-32, bit 31 for x^0.
constexpr u32 kOne = 1U << 31;
constexpr u32 kPolynomial = 0xEDB8'8320;

constexpr u32 times(u32 a, u32 b) {
  u32 product = 0;
  for (; a != 0; a <<= 1) {
    if ((a & kOne) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

/// x^-8, x^-16, x^-32 ...: what undoes 1, 2, 4 ... bytes.
constexpr auto kUndo = [] {
  std::array<u32, 16> powers{};
  u32 v = kOne;
  for (int i = 0; i < 8; ++i) v = (v & kOne) != 0 ? ((v ^ kPolynomial) << 1) | 1 : v << 1;
  for (u32& p : powers) {
    p = v;
    v = times(v, v);
  }
  return powers;
}();

}  // namespace

u32 icrc(const Route& route, std::span<const u8> bytes, u16 identification) {
  std::array<u8, kLinkHeader + kOuterHeaders + kBth> head;
  std::memset(head.data(), 0xFF, kLinkHeader);
  u8* const ip = head.data() + kLinkHeader;
  put_headers(route, bytes.size() + kIcrcBytes, identification, ip);
  // Fields that change on the way count as ones: TOS, TTL, both checksums, and BTH's FECN and BECN.
  ip[1] = ip[8] = 0xFF;
  store<2>(ip + 10, 0xFFFF);
  store<2>(ip + 26, 0xFFFF);
  u8* const bth = ip + kOuterHeaders;
  std::memcpy(bth, bytes.data(), kBth);
  bth[4] = 0xFF;
  const u32 begun = crc32_gzip_refl(0, head.data(), head.size());
  if (bytes.size() == kBth) return begun;
  return crc32_gzip_refl(begun, bytes.data() + kBth, bytes.size() - kBth);
}

std::optional<u16> identification_of(const Route& route, std::span<const u8> bytes, u32 stored, u16 guess) {
  // CRCs are linear: the difference of two is that of the two identifications, carried on through the bytes
  // behind them. Carried back, it has the 16 bits of an identification, unless more is different.
  u32 difference = stored ^ icrc(route, bytes, guess);
  if (difference == 0) return guess;
  std::size_t behind = 2 + kBehindIdentification + 8 + bytes.size();
  for (std::size_t i = 0; behind != 0 && i < kUndo.size(); ++i, behind >>= 1)
    if ((behind & 1) != 0) difference = times(kUndo[i], difference);
  if (difference > 0xFFFF) return std::nullopt;
  return static_cast<u16>(guess ^ (difference << 8 | difference >> 8));
}

void write_outer_headers(const Route& route, std::size_t bytes, u16 identification, u8* out) {
  put_headers(route, bytes, identification, out);
  u32 sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += static_cast<u32>(out[i] << 8 | out[i + 1]);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  store<2>(out + 10, ~sum & 0xFFFF);
}

}  // namespace doorbell::roce
