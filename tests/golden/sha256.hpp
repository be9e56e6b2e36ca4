// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// SHA-256 (FIPS 180-4) for golden vectors that give long contents by their digest.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <bit>
#include <span>
#include <string>
#include <vector>

namespace doorbell::golden {

inline std::string sha256_hex(std::span<const u8> bytes) {
  // The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  static constexpr u32 k[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
  std::array<u32, 8> h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::vector<u8> padded(bytes.begin(), bytes.end());
  padded.push_back(0x80);
  while (padded.size() % 64 != 56) padded.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<u8>(u64{bytes.size()} * 8 >> shift));

  for (std::size_t block = 0; block < padded.size(); block += 64) {
    u32 w[64];
    for (std::size_t i = 0; i < 16; ++i) {
      const u8* p = padded.data() + block + i * 4;
      w[i] = u32{p[0]} << 24 | u32{p[1]} << 16 | u32{p[2]} << 8 | p[3];
    }
    for (std::size_t i = 16; i < 64; ++i) {
      const u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, last] = h;
    for (std::size_t i = 0; i < 64; ++i) {
      const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const u32 t1 = last + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      last = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<u32, 8> add = {a, b, c, d, e, f, g, last};
    for (std::size_t i = 0; i < 8; ++i) h[i] += add[i];
  }
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const u32 word : h)
    for (int shift = 28; shift >= 0; shift -= 4) hex += digits[word >> shift & 15];
  return hex;
}

}  // namespace doorbell::golden
