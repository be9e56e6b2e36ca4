// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The ICRC against packets that others have made.
#include "rdma/roce/icrc.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "golden/golden.hpp"
#include "rdma/roce/wire.hpp"

namespace doorbell::roce {
namespace {

struct Recorded {
  std::string name;
  golden::Bytes bytes;  // IPv4 to ICRC

  [[nodiscard]] u32 number(std::size_t at, std::size_t size) const {
    u32 v = 0;
    for (std::size_t i = 0; i < size; ++i) v = v << 8 | bytes[at + i];
    return v;
  }
  [[nodiscard]] u16 port(std::size_t at) const { return static_cast<u16>(number(at, 2)); }
  [[nodiscard]] u16 identification() const { return port(4); }
  [[nodiscard]] Route route() const {
    return {.source = {number(12, 4), port(20)}, .destination = {number(16, 4), port(22)}};
  }
  [[nodiscard]] std::span<const u8> packet() const {
    return std::span(bytes).subspan(kOuterHeaders, bytes.size() - kOuterHeaders - kIcrcBytes);
  }
  [[nodiscard]] u32 stored() const {
    u32 v = 0;
    std::memcpy(&v, bytes.data() + bytes.size() - kIcrcBytes, sizeof v);
    return v;
  }
};

std::vector<Recorded> recorded() {
  const golden::json all = golden::read_file("roce_icrc");
  std::vector<Recorded> packets;
  for (const auto& p : all.at("packets"))
    packets.push_back({p.at("name").get<std::string>(), golden::from_hex(p.at("packet").get<std::string>())});
  EXPECT_GE(packets.size(), 5U);
  return packets;
}

TEST(RoceIcrc, IsThatOfOthers) {
  for (const Recorded& p : recorded())
    EXPECT_EQ(icrc(p.route(), p.packet(), p.identification()), p.stored()) << p.name;
}

TEST(RoceIcrc, OuterHeadersAreThoseOfOthers) {
  for (const Recorded& p : recorded()) {
    golden::Bytes ours(kOuterHeaders);
    write_outer_headers(p.route(), p.packet().size() + kIcrcBytes, p.identification(), ours.data());
    golden::Bytes theirs(p.bytes.begin(), p.bytes.begin() + kOuterHeaders);
    if (theirs[1] != 0 || theirs[8] != 64) continue;  // not as Linux sends it: made so for the ICRC's sake
    theirs[26] = theirs[27] = 0;
    EXPECT_EQ(golden::to_hex(ours), golden::to_hex(theirs)) << p.name;
  }
}

TEST(RoceIcrc, FindsTheIdentificationThatAPacketHad) {
  for (const Recorded& p : recorded())
    for (const u16 guess : std::initializer_list<u16>{0, 1, 0x0100, 0xBEEF, 0xFFFF})
      EXPECT_EQ(identification_of(p.route(), p.packet(), p.stored(), guess), p.identification()) << p.name;
  const golden::Bytes largest(12 + 28 + 4096, 0x5A);
  const Route route = {.source = {0x7F4D0101, 4791}, .destination = {0x7F4D0102, 4791}};
  for (const u16 id : std::initializer_list<u16>{0, 1, 63, 0x8000, 0xFFFF})
    EXPECT_EQ(identification_of(route, largest, icrc(route, largest, id)), id);
}

/// Each damage by one bit is found; one of 65,536 of others is taken for another identification.
TEST(RoceIcrc, FindsDamage) {
  const Recorded p = recorded()[0];
  ASSERT_EQ(p.packet().size(), 16U);
  for (std::size_t bit = 0; bit < 8 * p.packet().size(); ++bit) {
    golden::Bytes damaged(p.packet().begin(), p.packet().end());
    damaged[bit / 8] = static_cast<u8>(damaged[bit / 8] ^ 1 << bit % 8);
    const bool masked = bit / 8 == 4;
    EXPECT_EQ(identification_of(p.route(), damaged, p.stored()).has_value(), masked) << "bit " << bit;
  }
  for (u32 bit = 0; bit < 32; ++bit)
    EXPECT_FALSE(identification_of(p.route(), p.packet(), p.stored() ^ 1U << bit)) << "bit " << bit;
}

}  // namespace
}  // namespace doorbell::roce
