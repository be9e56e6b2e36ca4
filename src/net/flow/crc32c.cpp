// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/net/packet.hpp>

#include <array>
#include <cstring>

#include "net/flow/crc32c_instruction.hpp"

namespace doorbell::net {

namespace {

constexpr u32 kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<u32, 256> byte_table() {
  std::array<u32, 256> t{};
  for (u32 i = 0; i < 256; ++i) {
    u32 c = i;
    for (u32 k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) != 0 ? kPolynomial : 0);
    t[i] = c;
  }
  return t;
}
constexpr std::array<u32, 256> kBytes = byte_table();

u32 plain(u32 c, const u8* p, std::size_t n) {
  for (; n > 0; --n) c = (c >> 8) ^ kBytes[(c ^ *p++) & 255];
  return c;
}

#if defined(__x86_64__)

/// The CRC register after `bytes` more bytes of zeros, for each value of each of its four bytes.
struct Shift {
  u32 of[4][256];
};
Shift shift_by(std::size_t bytes) {
  Shift s{};
  u32 basis[32];
  for (u32 bit = 0; bit < 32; ++bit) {
    u32 c = 1u << bit;
    for (std::size_t i = 0; i < bytes; ++i) c = (c >> 8) ^ kBytes[c & 255];
    basis[bit] = c;
  }
  for (u32 part = 0; part < 4; ++part)
    for (u32 v = 0; v < 256; ++v)
      for (u32 bit = 0; bit < 8; ++bit)
        if ((v >> bit & 1) != 0) s.of[part][v] ^= basis[8 * part + bit];
  return s;
}
u32 shifted(const Shift& s, u32 c) {
  return s.of[0][c & 255] ^ s.of[1][c >> 8 & 255] ^ s.of[2][c >> 16 & 255] ^ s.of[3][c >> 24];
}

/// Three CRCs at once: the instruction takes three cycles, and a core starts one each cycle.
template <std::size_t kPart>
__attribute__((target("sse4.2"))) u32 in_threes(u32 crc, const u8** at, std::size_t* n, const Shift& shift) {
  while (*n >= 3 * kPart) {
    u64 a = crc, b = 0, c = 0;
    const u8* p = *at;
    for (std::size_t i = 0; i < kPart; i += 8) {
      u64 wa, wb, wc;
      std::memcpy(&wa, p + i, 8);
      std::memcpy(&wb, p + kPart + i, 8);
      std::memcpy(&wc, p + 2 * kPart + i, 8);
      a = _mm_crc32_u64(a, wa);
      b = _mm_crc32_u64(b, wb);
      c = _mm_crc32_u64(c, wc);
    }
    crc = shifted(shift, static_cast<u32>(a)) ^ static_cast<u32>(b);
    crc = shifted(shift, crc) ^ static_cast<u32>(c);
    *at += 3 * kPart;
    *n -= 3 * kPart;
  }
  return crc;
}

constexpr std::size_t kLong = 1024, kShort = 128;

__attribute__((target("sse4.2"))) u32 by_instruction(u32 c, const u8* p, std::size_t n) {
  if (n >= 3 * kShort) {
    static const Shift after_long = shift_by(kLong);
    static const Shift after_short = shift_by(kShort);
    c = in_threes<kLong>(c, &p, &n, after_long);
    c = in_threes<kShort>(c, &p, &n, after_short);
  }
  u64 wide = c;
  for (; n >= 8; n -= 8, p += 8) {
    u64 w;
    std::memcpy(&w, p, 8);
    wide = _mm_crc32_u64(wide, w);
  }
  c = static_cast<u32>(wide);
  for (; n > 0; --n) c = _mm_crc32_u8(c, *p++);
  return c;
}

#endif

}  // namespace

u32 crc32c(const void* data, std::size_t n, u32 crc) {
  const u8* p = static_cast<const u8*>(data);
#if defined(__x86_64__)
  if (kHasCrc32c) return ~by_instruction(~crc, p, n);
#endif
  return ~plain(~crc, p, n);
}

}  // namespace doorbell::net
