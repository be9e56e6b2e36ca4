// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Conversions against their definition: of all numbers that the format has, the nearest one, and of two
// equally near ones the one whose last bit is 0.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "emulated_warp.hpp"
#include "net/assembly/convert.hpp"

namespace doorbell::net {
namespace {

/// A 16-bit format's non-negative numbers in ascending order, the index being their bits.
std::vector<double> numbers(u32 fraction_bits, int bias) {
  std::vector<double> out;
  const u32 exponents = 1u << (15 - fraction_bits);
  for (u32 bits = 0; bits < 0x8000; ++bits) {
    const u32 exponent = bits >> fraction_bits;
    const double fraction = static_cast<double>(bits & ((1u << fraction_bits) - 1)) / (1u << fraction_bits);
    if (exponent == exponents - 1) {
      // Infinity stands where the next number would be: rounding to it is rounding up past the largest.
      out.push_back(std::ldexp(1.0, static_cast<int>(exponent) - bias));
      break;
    }
    out.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias)
                                : std::ldexp(1 + fraction, static_cast<int>(exponent) - bias));
  }
  return out;
}

u32 nearest(const std::vector<double>& all, double v) {
  const double magnitude = std::abs(v);
  const auto above = std::ranges::lower_bound(all, magnitude);
  u32 bits;
  if (above == all.end()) {
    bits = static_cast<u32>(all.size()) - 1;
  } else {
    bits = static_cast<u32>(above - all.begin());
    if (bits > 0 && *above != magnitude) {
      const double up = *above - magnitude, down = magnitude - all[bits - 1];
      if (down < up || (down == up && bits % 2 == 1)) --bits;
    }
  }
  return v < 0 ? bits | 0x8000 : bits;
}

u32 defined(Float f, std::int32_t v) {
  static const auto halves = numbers(10, 15);
  static const auto brains = numbers(7, 127);
  if (f == Float::fp16) return nearest(halves, v);
  if (f == Float::bf16) return nearest(brains, v);
  const auto single = static_cast<float>(v);
  u32 bits;
  std::memcpy(&bits, &single, 4);
  return bits;
}

u32 bits_made(Float f, std::int32_t v) {
  const auto raw = static_cast<u32>(v);
  switch (f) {
    case Float::fp16:
      return float_bits<Float::fp16>(raw);
    case Float::bf16:
      return float_bits<Float::bf16>(raw);
    case Float::fp32:
      return float_bits<Float::fp32>(raw);
  }
  return 0;
}

constexpr Float kFloats[] = {Float::fp16, Float::bf16, Float::fp32};

TEST(Convert, KnownValues) {
  EXPECT_EQ(float_bits<Float::fp16>(1), 0x3c00U);
  EXPECT_EQ(float_bits<Float::fp16>(static_cast<u32>(-2)), 0xc000U);
  EXPECT_EQ(float_bits<Float::fp16>(65504), 0x7bffU);
  EXPECT_EQ(float_bits<Float::fp16>(65519), 0x7bffU);
  EXPECT_EQ(float_bits<Float::fp16>(65520), 0x7c00U);
  EXPECT_EQ(float_bits<Float::bf16>(1), 0x3f80U);
  EXPECT_EQ(float_bits<Float::bf16>(257), 0x4380U) << "a tie goes to the even one";
  EXPECT_EQ(float_bits<Float::bf16>(259), 0x4382U);
  EXPECT_EQ(float_bits<Float::fp32>(0x80000000U), 0xcf000000U);
}

TEST(Convert, EveryIntegerOfSixteenBits) {
  for (const Float f : kFloats)
    for (std::int32_t v = -32768; v < 32768; ++v) ASSERT_EQ(bits_made(f, v), defined(f, v)) << v;
}

TEST(Convert, WideIntegersAtEveryRoundingPoint) {
  std::mt19937_64 random(1);
  std::vector<std::int32_t> values = {0, std::numeric_limits<std::int32_t>::min(),
                                      std::numeric_limits<std::int32_t>::max()};
  for (u32 top = 0; top < 31; ++top)
    for (u32 low = 0; low <= top; ++low)
      for (int d = -2; d <= 2; ++d) {
        values.push_back(static_cast<std::int32_t>((1u << top) + (1u << low) + static_cast<u32>(d)));
        values.push_back(static_cast<std::int32_t>((1u << top) + (3u << low) + static_cast<u32>(d)));
      }
  for (u32 i = 0; i < 200000; ++i)
    values.push_back(static_cast<std::int32_t>(random() >> (32 + random() % 31)));
  for (const Float f : kFloats)
    for (const std::int32_t v : values) {
      ASSERT_EQ(bits_made(f, v), defined(f, v)) << v;
      const auto minus = static_cast<std::int32_t>(0U - static_cast<u32>(v));
      ASSERT_EQ(bits_made(f, minus), defined(f, minus)) << minus;
    }
}

/// Integer `i` of the bytes, decoded plainly.
std::int32_t decoded(const Conversion& c, const u8* p, u64 i) {
  i64 v = 0;
  const u32 bits = bits_of(c.from);
  if (bits == 4) {
    const bool high = (i % 2 == 1) != c.big_endian;
    v = high ? p[i / 2] / 16 : p[i / 2] % 16;
  } else {
    const u32 n = bits / 8;
    for (u32 b = 0; b < n; ++b) v = v * 256 + p[i * n + (c.big_endian ? b : n - 1 - b)];
  }
  if (v >= i64{1} << (bits - 1)) v -= i64{1} << bits;
  return static_cast<std::int32_t>(v);
}

template <u32 Lanes>
void expect_as_defined(const Conversion& c, const std::vector<u8>& in, u32 in_offset, u32 bytes,
                       u32 out_offset) {
  constexpr u8 kUntouched = 0xcd;
  const u64 made = converted_bytes(c, bytes);
  std::vector<u8> storage(in.size() + 64), out_storage(made + 96, kUntouched);
  const auto aligned = [](std::vector<u8>& v) {
    return v.data() + (16 - reinterpret_cast<u64>(v.data()) % 16) % 16;
  };
  u8* const from = aligned(storage) + in_offset;
  std::copy_n(in.begin(), bytes, from);
  u8* const to = aligned(out_storage) + 16 + out_offset;
  collective<Lanes>([&](const auto& warp) { convert(warp, c, from, bytes, to); });
  const u32 width = bytes_of(c.to);
  for (u64 i = 0; i < made / width; ++i) {
    u32 bits = 0;
    std::memcpy(&bits, to + i * width, width);
    ASSERT_EQ(bits, defined(c.to, decoded(c, from, i)))
        << "element " << i << " of " << bits_of(c.from) << " bits, to " << static_cast<u32>(c.to);
  }
  EXPECT_EQ(to[-1], kUntouched);
  EXPECT_EQ(to[made], kUntouched);
}

class ConvertBuffers : public testing::TestWithParam<u32> {};

TEST_P(ConvertBuffers, OneLaneAndManyMakeTheSame) {
  const Conversion c{static_cast<Integer>(GetParam() % 4), kFloats[GetParam() / 4 % 3], GetParam() / 12 != 0};
  std::mt19937_64 random(GetParam());
  std::vector<u8> in(512);
  for (u8& b : in) b = static_cast<u8>(random());
  for (const u32 bytes : {0U, 1U, 2U, 3U, 4U, 8U, 31U, 64U, 100U, 333U, 512U})
    for (const u32 offset : {0U, 1U, 2U, 8U}) {
      expect_as_defined<1>(c, in, offset, bytes, 0);
      expect_as_defined<1>(c, in, 0, bytes, offset);
      expect_as_defined<4>(c, in, offset, bytes, offset);
    }
}

TEST_P(ConvertBuffers, EveryInputOfSixteenBitsOrLess) {
  const Conversion c{static_cast<Integer>(GetParam() % 4), kFloats[GetParam() / 4 % 3], GetParam() / 12 != 0};
  std::vector<u8> in;
  for (u32 i = 0; i < 65536; ++i) {
    // Each byte for the narrow ones; with the byte above it each int16, and int32 of these.
    if (c.from >= Integer::int16 || i < 256) in.push_back(static_cast<u8>(i));
    if (c.from >= Integer::int16) in.push_back(static_cast<u8>(i >> 8));
  }
  expect_as_defined<1>(c, in, 0, static_cast<u32>(in.size()), 0);
  expect_as_defined<32>(c, in, 0, static_cast<u32>(in.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(All, ConvertBuffers, testing::Range(0U, 24U));

}  // namespace
}  // namespace doorbell::net
