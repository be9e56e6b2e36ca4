// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/flow/headers.hpp"

#include <doorbell/net/packet.hpp>
#include <gtest/gtest.h>

#include <array>

namespace doorbell::net {
namespace {

constexpr u32 kSlots = 5, kStride = 96;

TEST(NetHeaders, AreWrittenAsTheFieldsSay) {
  std::array<u8, kSlots * kStride> memory{};
  const TxSlots slots = {memory.data(), kStride, kSlots};
  const std::array<u32, kSlots> data_crcs = {11, 22, 33, 44, 55};
  Header like;
  like.run_tag = 0x1234;
  like.data_bytes = 64;
  like.version_flags |= kHasDataCrc << 4;
  // The sequence wraps behind the second one, the slots behind the third.
  HeaderRun run{.stream_sequence = stream_sequence(0xfffe, kSequenceMask - 1), .tx_time_ns = 77, .count = 4};
  std::memcpy(&run.mark, &like, sizeof run.mark);
  write_headers(run, slots, 1000 * kSlots + 2, data_crcs.data());
  for (u32 i = 0; i < run.count; ++i) {
    const u64 n = 1000 * kSlots + 2 + i;
    Header h;
    std::memcpy(&h, slots.payload(n), kHeaderBytes);
    EXPECT_EQ(h.magic, kMagic);
    EXPECT_EQ(h.version(), kVersion);
    EXPECT_TRUE(h.has(kHasDataCrc));
    EXPECT_EQ(h.run_tag, 0x1234);
    EXPECT_EQ(h.data_bytes, 64u);
    EXPECT_EQ(h.stream(), 0xfffe);
    EXPECT_EQ(h.sequence(), (kSequenceMask - 1 + i) & kSequenceMask);
    EXPECT_EQ(h.tx_time_ns, 77u);
    EXPECT_EQ(h.data_crc32c, data_crcs[n % kSlots]);
    EXPECT_EQ(h.header_crc32c, crc32c(&h, kHeaderBytes - 4));
  }
  const u8* const untouched = slots.payload(1000 * kSlots + 1);
  EXPECT_TRUE(std::all_of(untouched, untouched + kStride, [](u8 b) { return b == 0; }));
  EXPECT_EQ(slots.payload(1000 * kSlots + 2)[kHeaderBytes], 0) << "data is left alone";
}

TEST(NetHeaders, CrcsAreThoseOfTheFirst28Bytes) {
  std::array<std::array<u8, 40>, 4> packets{};
  for (u32 i = 0; i < packets.size(); ++i)
    for (u32 b = 0; b < 40; ++b) packets[i][b] = static_cast<u8>(i * 57 + b * 3);
  const std::array<const u8*, 5> at = {packets[0].data(), packets[1].data(), nullptr, packets[2].data() + 1,
                                       packets[3].data()};
  const std::array<u32, 5> bytes = {40, kHeaderBytes, 0, kHeaderBytes, kHeaderBytes - 1};
  std::array<u32, 5> crcs = {1, 1, 1, 1, 1};
  header_crcs(at.data(), bytes.data(), 5, crcs.data());
  EXPECT_EQ(crcs, (std::array<u32, 5>{crc32c(at[0], 28), crc32c(at[1], 28), 1, crc32c(at[3], 28), 1}))
      << "those that are too short are passed over";
}

}  // namespace
}  // namespace doorbell::net
