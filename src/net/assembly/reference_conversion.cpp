// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/reference_conversion.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace doorbell::net {

namespace {

/// Integer i of those at `from`. Shifts of signed numbers keep the sign (C++20).
i64 integer(const Conversion& c, const u8* from, u64 i) {
  const u32 bits = bits_of(c.from);
  if (bits == 4) {
    const bool high = (i % 2 != 0) != c.big_endian;
    const i64 v = high ? from[i / 2] >> 4 : from[i / 2] & 15;
    return v >= 8 ? v - 16 : v;
  }
  i64 v = 0;
  const u32 bytes = bits / 8;
  for (u32 b = 0; b < bytes; ++b) v |= i64{from[i * bytes + b]} << (8 * (c.big_endian ? bytes - 1 - b : b));
  return v >= i64{1} << (bits - 1) ? v - (i64{1} << bits) : v;
}

struct Format {
  int fraction;  ///< bits behind the point
  int bias;
  int exponent_bits;
};

/// The bits of the nearest number of the format, of equally near ones the even one.
u32 bits_of_nearest(const Format& f, i64 value) {
  if (value == 0) return 0;
  const u32 sign = value < 0 ? 1u << (f.fraction + f.exponent_bits) : 0;
  constexpr int kFraction = 52, kBias = 1023;  // of double precision, which holds the integer
  const u64 bits = std::bit_cast<u64>(std::abs(static_cast<double>(value)));
  int exponent = static_cast<int>(bits >> kFraction) - kBias;
  const int cut = kFraction - f.fraction;
  const u64 fraction = bits & ((u64{1} << kFraction) - 1), rest = fraction & ((u64{1} << cut) - 1),
            half = u64{1} << (cut - 1);
  u64 kept = fraction >> cut;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  if (kept >> f.fraction != 0) kept = 0, ++exponent;
  const int biased = exponent + f.bias, infinite = (1 << f.exponent_bits) - 1;
  if (biased >= infinite) return sign | static_cast<u32>(infinite) << f.fraction;
  return sign | static_cast<u32>(biased) << f.fraction | static_cast<u32>(kept);
}

}  // namespace

void reference_conversion(const Conversion& c, const u8* from, u64 bytes, std::vector<u8>& to) {
  constexpr Format kFormats[] = {{10, 15, 5}, {7, 127, 8}, {23, 127, 8}};
  const Format& format = kFormats[static_cast<u32>(c.to)];
  const u64 n = elements_in(c.from, bytes), each = bytes_of(c.to), before = to.size();
  to.resize(before + n * each);
  u8* at = to.data() + before;
  // There are few different short integers.
  const u32 bits = bits_of(c.from);
  std::array<u32, 256> known{};
  const i64 half = bits <= 8 ? i64{1} << (bits - 1) : 0;
  for (i64 v = -half; v < half; ++v) known[static_cast<u8>(v)] = bits_of_nearest(format, v);
  for (u64 i = 0; i < n; ++i) {
    const i64 value = integer(c, from, i);
    const u32 number = bits <= 8 ? known[static_cast<u8>(value)] : bits_of_nearest(format, value);
    for (u32 b = 0; b < each; ++b) *at++ = static_cast<u8>(number >> (8 * b));
  }
}

}  // namespace doorbell::net
