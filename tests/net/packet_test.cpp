// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/net/packet.hpp>
#include <doorbell/pattern_unit.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace doorbell::net {
namespace {

TEST(Crc32c, HasItsPublishedValues) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  // RFC 3720, B.4: 32 bytes of zeros, of ones, rising, falling.
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  std::vector<u8> rising(32), falling(32);
  for (u8 i = 0; i < 32; ++i) rising[i] = i, falling[i] = static_cast<u8>(31 - i);
  EXPECT_EQ(crc32c(rising.data(), 32), 0x46dd794eu);
  EXPECT_EQ(crc32c(falling.data(), 32), 0x113fdb5cu);
}

/// Bit by bit, which is how the polynomial is defined.
u32 by_bits(const std::vector<u8>& data) {
  u32 c = ~0u;
  for (const u8 b : data) {
    c ^= b;
    for (u32 k = 0; k < 8; ++k) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~c;
}

TEST(Crc32c, AllLengthsAgreeWithTheDefinition) {
  std::vector<u8> data;
  for (u32 n = 0; n < 8200; n += n < 1200 ? 1 : 613) {
    while (data.size() < n) data.push_back(static_cast<u8>(pattern::mix64(data.size())));
    ASSERT_EQ(crc32c(data.data(), n), by_bits(data)) << n;
    const u32 half = n / 3;
    ASSERT_EQ(crc32c(data.data() + half, n - half, crc32c(data.data(), half)), by_bits(data)) << n;
  }
}

TEST(PacketHeader, FieldsLieWhereTheSheetHasThem) {
  Header h;
  h.run_tag = 0x1122;
  h.data_bytes = 0x33445566;
  h.stream_sequence = stream_sequence(0x7788, 0x99aabbccddee);
  h.version_flags = kVersion | kHasDataCrc << 4;
  u8 bytes[32];
  std::memcpy(bytes, &h, 32);
  EXPECT_EQ(bytes[0], 0xdb);
  EXPECT_EQ(bytes[1], 0x21);
  EXPECT_EQ(bytes[2], 0x22);
  EXPECT_EQ(bytes[4], 0x66);
  EXPECT_EQ(bytes[8], 0xee);
  EXPECT_EQ(bytes[13], 0x99);
  EXPECT_EQ(bytes[15], 0x77);
  EXPECT_TRUE(h.has(kHasDataCrc));
  EXPECT_FALSE(h.has(kIntendedTime));
}

TEST(PacketHeader, ASequenceWrapsAfter48Bits) {
  Header h;
  h.stream_sequence = stream_sequence(7, (u64{1} << 48) + 5);
  EXPECT_EQ(h.stream(), 7);
  EXPECT_EQ(h.sequence(), 5u);
}

double value_of_half(u16 bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 0) return sign * fraction * 0x1p-24;
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(PacketData, FloatsAreFiniteAndSpread) {
  double sum = 0, squares = 0, halves = 0;
  u32 n = 0;
  for (u32 t = 0; t < 3; ++t)
    for (u64 w = 0; w < 3000; ++w) {
      const u64 word = data_word(Fill::float32, 1, 2, t, w), h = data_word(Fill::float16, 1, 2, t, w);
      for (u32 i = 0; i < 2; ++i, ++n) {
        const u32 bits = static_cast<u32>(word >> (32 * i));
        float v;
        std::memcpy(&v, &bits, 4);
        ASSERT_TRUE(v >= -1 && v < 1) << v;
        sum += v, squares += v * v;
      }
      for (u32 i = 0; i < 4; ++i) {
        const double v = value_of_half(static_cast<u16>(h >> (16 * i)));
        ASSERT_TRUE(v >= -1 && v < 1) << v;
        EXPECT_EQ(v * 1024, std::floor(v * 1024));
        halves += v;
      }
    }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1.0 / 3, 0.02);
  EXPECT_NEAR(halves / (2 * n), 0, 0.02);
}

TEST(PacketData, DependsOnEachOfItsInputs) {
  const u64 w = data_word(Fill::bytes, 1, 2, 3, 4);
  EXPECT_NE(w, data_word(Fill::bytes, 2, 2, 3, 4));
  EXPECT_NE(w, data_word(Fill::bytes, 1, 3, 3, 4));
  EXPECT_NE(w, data_word(Fill::bytes, 1, 2, 4, 4));
  EXPECT_NE(w, data_word(Fill::bytes, 1, 2, 3, 5));
  EXPECT_EQ(w, data_word(Fill::bytes, 1, 2, 3, 4));
  EXPECT_EQ(0u, data_word(Fill::zero, 1, 2, 3, 4));
}

}  // namespace
}  // namespace doorbell::net
