// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Words that devices read: the order in which they are stored, and their bytes.

#include <doorbell/rdma/format.hpp>
#include <gtest/gtest.h>

namespace doorbell::rdma {
namespace {

TEST(MemoryOrder, TheChosenDwordIsTheOneThatIsOrdered) {
  Word16 v{};
  const Word16 want = {{1, 2, 3, 4}};
  store16_release<2>(&v, want);
  EXPECT_EQ(v, want);
  EXPECT_EQ(load16_acquire<0>(&v), want);
  EXPECT_EQ(load16_acquire<2>(&v), want);
  EXPECT_EQ(load16_unordered<1>(&v), want);
}

TEST(MemoryOrder, RegistersOf64Bits) {
  u64 reg = 0;
  store64_release(&reg, 0x1122334455667788);
  EXPECT_EQ(load64_relaxed(&reg), 0x1122334455667788u);
  EXPECT_EQ(load64_acquire(&reg), 0x1122334455667788u);
  EXPECT_EQ(exchange64(&reg, 5), 0x1122334455667788u);
  store64_relaxed(&reg, load64_relaxed(&reg) + 1);
  EXPECT_EQ(reg, 6u);
}

TEST(Words, ByteOrder) {
  EXPECT_EQ(be32(0x11223344), 0x44332211u);
  EXPECT_EQ(be64(0x1122334455667788), 0x8877665544332211u);
  EXPECT_EQ(swapped(words(0x1122334455667788, 1)), (Word16{{0x88776655, 0x44332211, 0x01000000, 0}}));
}

TEST(Words, APayloadEndsWithZeros) {
  const u8 bytes[] = {1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(payload_word(bytes, 7, 0), 0x04030201u);
  EXPECT_EQ(payload_word(bytes, 7, 4), 0x00070605u);
  EXPECT_EQ(payload_word(bytes, 6, 4), 0x00000605u);
  EXPECT_EQ(payload_word(bytes, 5, 4), 0x00000005u);
  EXPECT_EQ(payload_word(bytes, 4, 4), 0u);
  EXPECT_EQ(payload_word(bytes, 4, 0xfffffffc), 0u);
  EXPECT_EQ(payload_part(bytes, 7, 0), (Word16{{0x04030201, 0x00070605, 0, 0}}));
}

}  // namespace
}  // namespace doorbell::rdma
