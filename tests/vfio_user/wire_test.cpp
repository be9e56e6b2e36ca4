// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The codec against messages that were seen on the wire between SPDK 26.05's target, its tools and QEMU 11.1
// (their source: the facts of this project, marked as run), and against what no right end sends.
#include "vfio_user/wire.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <string>

namespace doorbell::vfio_user {
namespace {

std::vector<u8> from_hex(const std::string& text) {
  std::vector<u8> out;
  u32 digits = 0, value = 0;
  for (const char c : text) {
    if (c == ' ') continue;
    value = value << 4 | static_cast<u32>(c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) {
      out.push_back(static_cast<u8>(value));
      value = 0;
    }
  }
  return out;
}

std::vector<u8> text_of(const std::string& json) {
  std::vector<u8> out = {0, 0, 1, 0};
  out.insert(out.end(), json.begin(), json.end());
  out.push_back(0);
  return out;
}

TEST(VfioUserWire, VersionOfSpdksDriver) {
  // 20 bytes, no text, id 0 as in all its messages.
  EXPECT_EQ(command(0, Command::version, encode_version(0, 1, nullptr)),
            from_hex("0000 0100 14000000 00000000 00000000 0000 0100"));
}

TEST(VfioUserWire, VersionsAnswerFitsQemusRequest) {
  // QEMU reads it into the 214 bytes of its request, and takes at most 16 descriptors.
  const Capabilities ours{.max_msg_fds = 8, .max_dma_maps = 32768};
  const auto answer = reply({.command = 1, .flags = 0}, 0, encode_version(0, 0, &ours));
  EXPECT_LE(answer.size(), 214u);
  std::string why;
  const auto back = decode_version(std::span(answer).subspan(kHeaderBytes), why);
  ASSERT_TRUE(back) << why;
  EXPECT_EQ(back->capabilities.max_msg_fds, 8u);
  EXPECT_EQ(back->capabilities.max_dma_maps, 32768u);
  EXPECT_EQ(back->capabilities.max_data_xfer_size, kMostData);
  EXPECT_EQ(back->capabilities.pgsizes, 4096u);
}

TEST(VfioUserWire, SpdksBar0) {
  // BAR 0 of SPDK's target: 4000h bytes, flags Fh, one mappable area at 1000h.
  const Area area{0x1000, 0x1000};
  bool fits = false;
  const RegionInfo info{.flags = RegionInfo::kRead | RegionInfo::kWrite | RegionInfo::kMmap, .size = 0x4000};
  const auto whole = encode_region(info, std::span(&area, 1), 64, fits);
  EXPECT_TRUE(fits);
  EXPECT_EQ(whole, from_hex("40000000 0f000000 00000000 20000000 0040000000000000 0000000000000000"
                            "0100 0100 00000000 01000000 00000000 0010000000000000 0010000000000000"));
  std::string why;
  const auto areas = decode_areas(whole, why);
  ASSERT_TRUE(areas) << why;
  ASSERT_EQ(areas->size(), 1u);
  EXPECT_EQ(areas->front().offset, 0x1000u);
  // QEMU asks with room for the structure alone: no capability, no flag for one, and what is needed.
  const auto fixed = encode_region(info, std::span(&area, 1), 32, fits);
  EXPECT_FALSE(fits);
  EXPECT_EQ(fixed, from_hex("40000000 07000000 00000000 00000000 0040000000000000 0000000000000000"));
}

TEST(VfioUserWire, InterruptsOfQemu) {
  // Connect vector 0 of MSI-X; disconnect; disable all; end of INTx: as seen.
  const auto set = [](const char* hex) { return *first_of<IrqSet>(from_hex(hex)); };
  EXPECT_EQ(check(set("14000000 24000000 02000000 00000000 01000000"), 512, 0, 1), 0);
  EXPECT_EQ(check(set("14000000 24000000 02000000 00000000 01000000"), 512, 0, 0), 0);
  EXPECT_EQ(check(set("14000000 21000000 02000000 00000000 00000000"), 512, 0, 0), 0);
  EXPECT_EQ(check(set("14000000 11000000 00000000 00000000 01000000"), 1, 0, 0), 0);
}

TEST(VfioUserWire, InterruptsThatAreNone) {
  const auto refused = [](const IrqSet& s, u32 have, std::size_t data = 0, std::size_t files = 0) {
    return check(s, have, data, files) == EINVAL;
  };
  const u32 connect = IrqSet::kEventfd | IrqSet::kTrigger;
  EXPECT_TRUE(refused({.flags = connect, .index = 2, .start = 512, .count = 1}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = connect, .index = 2, .start = 511, .count = 2}, 512, 0, 2));
  EXPECT_TRUE(refused({.flags = connect, .index = 2, .start = 1, .count = ~0u}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = connect, .index = 2, .start = 0, .count = 2}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = connect, .index = 2, .start = 0, .count = 0}, 512));
  EXPECT_TRUE(refused({.flags = connect | IrqSet::kBool, .index = 2, .count = 1}, 512, 1, 1));
  EXPECT_TRUE(refused({.flags = IrqSet::kTrigger, .index = 2, .count = 1}, 512));
  EXPECT_TRUE(refused({.flags = IrqSet::kEventfd, .index = 2, .count = 1}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = connect | 0x40, .index = 2, .count = 1}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = IrqSet::kBool | IrqSet::kTrigger, .index = 2, .count = 4}, 512, 3));
  EXPECT_TRUE(refused({.flags = IrqSet::kNone | IrqSet::kTrigger, .index = 2, .count = 1}, 512, 0, 1));
  EXPECT_TRUE(refused({.flags = IrqSet::kNone | IrqSet::kMask, .index = 3, .count = 1}, 1));
  EXPECT_TRUE(refused({.flags = connect, .index = 1, .count = 1}, 0, 0, 1));
}

TEST(VfioUserWire, LengthsThatAreNone) {
  const auto header = [](u32 size, u32 flags = 0) {
    const Header h{.command = 1, .size = size, .flags = flags};
    const auto bytes = bytes_of(h);
    return std::vector<u8>(bytes.begin(), bytes.end());
  };
  EXPECT_EQ(length_of(from_hex("0000 0100 14000000 00000000 00000000"), kLongest), 20u);
  EXPECT_EQ(length_of(header(16), kLongest), 16u);
  EXPECT_EQ(length_of(header(kLongest), kLongest), kLongest);
  for (const u32 size : {0u, 1u, 15u, kLongest + 1, ~0u}) EXPECT_EQ(length_of(header(size), kLongest), 0u);
  EXPECT_EQ(length_of(header(16, 2), kLongest), 0u);
  EXPECT_EQ(length_of(header(16, 15), kLongest), 0u);
  EXPECT_EQ(length_of(std::span<const u8>(), kLongest), 0u);
}

TEST(VfioUserWire, VersionTexts) {
  std::string why;
  const auto read = [&](const std::string& json) { return decode_version(text_of(json), why); };
  // The texts of QEMU and libvfio-user, unknown keys among them.
  const auto qemu = read(
      R"({"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576,"pgsizes":4096,"max_dma_maps":65535,)"
      R"("write_multiple":true,"twin_socket":{"supported":false}}})");
  ASSERT_TRUE(qemu) << why;
  EXPECT_EQ(qemu->capabilities.max_msg_fds, 16u);
  EXPECT_TRUE(qemu->capabilities.write_multiple);
  EXPECT_TRUE(read("{}"));
  EXPECT_TRUE(read(R"({"capabilities":{}})"));
  for (const char* bad :
       {"", "{", "[]", "7", R"({"capabilities":7})", R"({"capabilities":{"max_msg_fds":-1}})",
        R"({"capabilities":{"max_msg_fds":1025}})", R"({"capabilities":{"max_msg_fds":"8"}})",
        R"({"capabilities":{"max_data_xfer_size":0}})", R"({"capabilities":{"pgsizes":0}})",
        R"({"capabilities":{"max_dma_maps":1e3}})", R"({"capabilities":{"write_multiple":1}})"})
    EXPECT_FALSE(read(bad)) << bad;
  EXPECT_FALSE(read("{\"a\":" + std::string(2000, '[') + std::string(2000, ']') + "}"));
  EXPECT_FALSE(read(std::string(5000, ' ') + "{}"));
  EXPECT_FALSE(decode_version(from_hex("0000 01"), why));
  EXPECT_FALSE(decode_version(from_hex("0000 0100 7b7d"), why)) << "no final zero";
}

TEST(VfioUserWire, ErrorsHaveNoPayload) {
  const Header asked{.id = 0x1234, .command = 9};
  const std::vector<u8> data(20, 7);
  EXPECT_EQ(reply(asked, EINVAL, data, data), from_hex("3412 0900 10000000 21000000 16000000"));
  EXPECT_EQ(reply(asked, 0, {}, {}), from_hex("3412 0900 10000000 01000000 00000000"));
}

TEST(VfioUserWire, RegionsThatContradictThemselves) {
  const Area area{0x1000, 0x1000};
  bool fits = false;
  const auto whole =
      encode_region({.flags = RegionInfo::kMmap, .size = 0x4000}, std::span(&area, 1), 64, fits);
  std::string why;
  const auto with = [&](std::size_t at, u32 value) {
    auto changed = whole;
    std::memcpy(changed.data() + at, &value, sizeof value);
    return decode_areas(changed, why).has_value();
  };
  EXPECT_TRUE(with(0, 64));
  EXPECT_FALSE(with(12, 16)) << "the capability inside the structure";
  EXPECT_FALSE(with(12, 60)) << "behind the end";
  EXPECT_FALSE(with(12, ~0u));
  EXPECT_FALSE(with(40, 3)) << "more areas than fit";
  EXPECT_FALSE(with(40, ~0u));
  EXPECT_FALSE(with(48, 0x4000)) << "an area behind the region";
  EXPECT_FALSE(with(56, 0)) << "an empty area";
  // A chain that goes in a circle: an unknown capability whose next one is itself.
  auto circle = whole;
  circle[32] = 9;
  circle[36] = 32;
  EXPECT_FALSE(decode_areas(circle, why));
  EXPECT_FALSE(decode_areas(std::span(whole).first(31), why));
}

TEST(VfioUserWire, AnyBytesDecodeToSomethingOrNothing) {
  std::mt19937_64 random(7);
  std::string why;
  for (int i = 0; i < 20000; ++i) {
    std::vector<u8> bytes(random() % 96);
    for (u8& b : bytes) b = static_cast<u8>(random());
    const auto areas = decode_areas(bytes, why);
    const auto info = first_of<RegionInfo>(bytes);
    if (areas) {
      for (const Area& a : *areas) EXPECT_TRUE(within(a.offset, a.size, info->size));
    }
    (void)decode_version(bytes, why);
    EXPECT_LE(length_of(bytes, kLongest), kLongest);
  }
}

}  // namespace
}  // namespace doorbell::vfio_user
