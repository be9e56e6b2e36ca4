// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The contents of a unit of the pattern: recorded bytes, independence of its parts, the CPU's vectors against
// single lanes, and units of version 1.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "golden/sha256.hpp"
#include "loop/payload.hpp"

namespace doorbell::pattern {
namespace {

const OneLane kLane;

struct alignas(16) OneUnit {
  u32 words[kUnitWords] = {};
  [[nodiscard]] std::span<const u8> bytes() const {
    return {reinterpret_cast<const u8*>(words), sizeof words};
  }
};

OneUnit unit_of(const Identity& id) {
  OneUnit u;
  make_unit(u.words, id);
  return u;
}
OneUnit old_unit_of(const Identity& id) {
  OneUnit u;
  version1::make_unit(u.words, id);
  return u;
}

constexpr Identity kRecorded = {0x0123456789abcdef, 0xfedcba9876543200, 0x1122334455667788};

/// Made by the program in docs/pattern.md. A pattern that changes needs another magic.
TEST(PatternUnit, HoldsTheRecordedBytes) {
  const OneUnit u = unit_of(kRecorded);
  const u32 begin[] = {0x324c4244, 0x1eb6ad86, 0x89abcdef, 0x01234567, 0x76543200, 0xfedcba98,
                       0x55667788, 0x11223344, 0xc2276bf1, 0x840ed7e5, 0x085dafcd, 0x10bb5f9a};
  const u32 end[] = {0x8ae120a0, 0x15824147, 0x2b04828e, 0x5609051c};
  EXPECT_TRUE(std::ranges::equal(begin, std::span(u.words).first<12>()));
  EXPECT_TRUE(std::ranges::equal(end, std::span(u.words).last<4>()));
  EXPECT_EQ(golden::sha256_hex(u.bytes()),
            "abccb19b5fddafd639c115b2282aefa950ea8e7120fea35617fcaa33725de6c8");
}

TEST(PatternUnit, AShortTailHoldsTheRecordedBytes) {
  alignas(16) u8 tail[64] = {};
  payload::fill(kLane, tail, 63, kRecorded);
  EXPECT_EQ(golden::sha256_hex(std::span(tail).first<63>()),
            "87fd9d4cfa5a534e4e4d118919be662c3bb0e80b7e6854964b2359961c9580d6");
  EXPECT_EQ(tail[63], 0);
}

TEST(PatternUnit, OfVersion1HoldsTheRecordedBytes) {
  const OneUnit u = old_unit_of(kRecorded);
  const u32 begin[] = {0x314c4244, 0xccc239ef, 0x89abcdef, 0x01234567, 0x76543200, 0xfedcba98,
                       0x55667788, 0x11223344, 0x99c473d9, 0x33c8e7b5, 0x6791cf6a, 0xcf239ed4};
  EXPECT_TRUE(std::ranges::equal(begin, std::span(u.words).first<12>()));
  EXPECT_EQ(u.words[kUnitWords - 1], 0x1744d899u);
}

/// The hash that a part begins with may be 0; an LFSR never leaves it.
TEST(PatternUnit, NoPartIsZero) {
  const u32 start = 5 * kSpread;  // the one that part 5 turns into 0
  ASSERT_EQ(absorb(start, 5 * kSpread), 0u);
  EXPECT_EQ(payload_part(start, 5), (Word16{{1, 2, 4, 8}}));
}

/// Units of other seeds, addresses or sequences differ in all words behind the header; so do a unit's parts.
TEST(PatternUnit, DiffersFromOthersInEveryWord) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const Identity id = {random() >> random() % 64, random() >> random() % 64 & ~u64{511},
                         random() >> random() % 64};
    Identity other = id;
    const u64 bit = u64{1} << random() % 64;
    switch (random() % 3) {
      case 0:
        other.seed ^= bit;
        break;
      case 1:
        other.address ^= bit;
        break;
      default:
        other.sequence ^= bit;
    }
    const OneUnit a = unit_of(id), b = unit_of(other);
    for (u32 w = kHeaderWords; w < kUnitWords; ++w) ASSERT_NE(a.words[w], b.words[w]) << w;
    for (u32 w = 0; w < 4; ++w) {
      std::set<u32> column;
      for (u32 p = kHeaderParts; p < kParts; ++p) column.insert(a.words[p * 4 + w]);
      ASSERT_EQ(column.size(), kParts - kHeaderParts);
    }
  }
}

/// Units in a row, whose addresses differ least, have starts of their own; each bit is one in half of them.
TEST(PatternUnit, NeighboursAreFarApart) {
  constexpr u32 kUnits = 1 << 17;
  std::vector<u32> starts;
  std::vector<u32> ones(32);
  for (u64 i = 0; i < kUnits; ++i) {
    starts.push_back(start_of({1, i * kUnitBytes, 1}));
    const u32 first = payload_part(starts.back(), 2).w[0];
    for (u32 b = 0; b < 32; ++b) ones[b] += first >> b & 1;
  }
  std::ranges::sort(starts);
  EXPECT_EQ(std::ranges::adjacent_find(starts), starts.end());
  for (u32 b = 0; b < 32; ++b) EXPECT_NEAR(ones[b], kUnits / 2, kUnits / 50) << "bit " << b;
}

struct Path {
  const char* name;
  void (*fill)(u32*, u64, const Identity&);
  u64 (*same)(const u32*, u64, const Identity&);
};

std::vector<Path> paths() {
  std::vector<Path> all = {{"chosen", cpu::fill, cpu::same}, {"plain", cpu::fill_plain, cpu::same_plain}};
#if defined(__x86_64__)
  if (cpu::has_avx2()) all.push_back({"avx2", cpu::fill_avx2, cpu::same_avx2});
#endif
  return all;
}

/// The reference: units made part by part, as one lane of a GPU makes them.
void fill_by_parts(u32* out, u64 n, Identity id) {
  for (; n > 0; --n, out += kUnitWords, id.address += kUnitBytes)
    for (u32 p = 0; p < kParts; ++p) std::memcpy(out + p * 4, make_part(id, p).w, 16);
}

TEST(PatternVectors, FillWhatLanesMakeAndNoMore) {
  std::mt19937_64 random(6);
  for (const Path& path : paths()) {
    for (int round = 0; round < 300; ++round) {
      const u64 n = random() % 9;
      const u64 offset = random() % 8;  // words: any alignment that a buffer may have
      // Often a 4 GiB boundary lies within, where the upper word of the address changes.
      const u64 address =
          random() % 3 == 0 ? (random() | 0xffff'ffff) - 511 - random() % 6 * 512 : random() & ~u64{511};
      const Identity id = {random(), address, random()};
      std::vector<u32> got(8 + 10 * kUnitWords, 0x5a5a5a5a), want = got;
      path.fill(got.data() + offset, n, id);
      fill_by_parts(want.data() + offset, n, id);
      ASSERT_EQ(got, want) << path.name << ", " << n << " units at word " << offset;
      ASSERT_EQ(path.same(got.data() + offset, n, id), n) << path.name;
    }
  }
}

TEST(PatternVectors, FindDamageOfAnyByteInTheFirstUnitThatHasIt) {
  std::mt19937_64 random(7);
  constexpr u64 kUnits = 5;
  for (const Path& path : paths()) {
    const Identity id = {random(), 0xffff'fc00, random()};
    std::vector<u32> data(kUnits * kUnitWords + 3);
    u32* const at = data.data() + 3;
    path.fill(at, kUnits, id);
    auto* const bytes = reinterpret_cast<u8*>(at);
    for (u64 b = 0; b < kUnits * kUnitBytes; ++b) {
      const u8 good = bytes[b];
      bytes[b] ^= static_cast<u8>(1u << random() % 8);
      ASSERT_EQ(path.same(at, kUnits, id), b / kUnitBytes) << path.name << ", byte " << b;
      bytes[b] = good;
    }
    for (int round = 0; round < 300; ++round) {  // parts, of one unit or of two, in each other's place
      const u64 a = random() % (kUnits * kParts), b = random() % (kUnits * kParts);
      const auto swap = [&] { std::swap_ranges(at + a * 4, at + a * 4 + 4, at + b * 4); };
      swap();
      ASSERT_EQ(path.same(at, kUnits, id), a == b ? kUnits : std::min(a, b) / kParts) << path.name;
      swap();
    }
  }
}

/// Tails have no vectors, but the same rules: each length, each byte of it, and nothing behind it.
TEST(PatternTails, AreCheckedToTheLastByte) {
  const Identity id = {3, 1 << 20, 4};
  for (u32 bytes = 1; bytes < kUnitBytes; ++bytes) {
    alignas(16) u8 data[2 * kUnitBytes];
    std::memset(data, 0xa5, sizeof data);
    payload::fill(kLane, data, bytes, id);
    ASSERT_TRUE(std::all_of(data + bytes, data + sizeof data, [](u8 b) { return b == 0xa5; })) << bytes;
    ASSERT_EQ(payload::check(kLane, data, bytes, id, {}).verdict, Verdict::ok) << bytes;
    for (u32 p = 0; p * 16 < bytes; ++p) {
      const Word16 part = payload::tail_part(id, bytes, p);
      ASSERT_EQ(std::memcmp(part.w, data + p * 16, std::min(16u, bytes - p * 16)), 0) << bytes;
    }
    for (u32 b = 0; b < bytes; ++b) {
      data[b] ^= 0x10;
      ASSERT_EQ(payload::check(kLane, data, bytes, id, {}).verdict, Verdict::corrupt)
          << bytes << ", byte " << b;
      data[b] ^= 0x10;
    }
    data[bytes] = 0;  // no longer its own
    ASSERT_EQ(payload::check(kLane, data, bytes, id, {}).verdict, Verdict::ok) << bytes;
  }
}

/// A read of what an earlier doorbell wrote succeeds and is told apart; where this run wrote, it is old data.
TEST(PatternVersion1, IsToldFromDamage) {
  const Identity id = {11, 8192, 7};
  OneUnit u = old_unit_of(id);
  const auto verdict = [&](bool written, bool strict = false) {
    return check(kLane, u.words, kUnitBytes, {id, written, strict}).verdict;
  };
  EXPECT_EQ(verdict(false), Verdict::old_version);
  EXPECT_EQ(verdict(false, true), Verdict::old_version);
  EXPECT_EQ(verdict(true), Verdict::stale);
  for (u32 b = 0; b < kUnitBytes; ++b) {
    u = old_unit_of(id);
    reinterpret_cast<u8*>(u.words)[b] ^= 0x40;
    EXPECT_EQ(verdict(true), Verdict::corrupt) << b;
    EXPECT_EQ(verdict(false), Verdict::corrupt) << b;
    EXPECT_EQ(verdict(false, true), Verdict::corrupt) << b;
  }
  u = old_unit_of({11, 8704, 7});
  EXPECT_EQ(verdict(false), Verdict::misplaced);
  EXPECT_EQ(verdict(true), Verdict::misplaced);
  u = old_unit_of({11, kNoAddress, 0});
  EXPECT_EQ(verdict(false), Verdict::unverifiable);
  EXPECT_EQ(verdict(false, true), Verdict::stale);
  // The other version's words under this one's magic are damage, and the other way round.
  u = old_unit_of(id);
  u.words[0] = kMagic;
  EXPECT_EQ(verdict(false), Verdict::corrupt);
  u = unit_of(id);
  u.words[0] = version1::kMagic;
  EXPECT_EQ(verdict(false), Verdict::corrupt);
}

/// It is no failure, and anything that is one comes before it.
TEST(PatternVersion1, IsTheLeastOfWhatATransferFinds) {
  const Identity id = {11, 8192, 7};
  std::vector<OneUnit> data = {unit_of(id), old_unit_of({11, 8704, 7}), unit_of({11, 9216, 7}), OneUnit{}};
  const auto found = [&](u64 units) { return check(kLane, data.data(), units * kUnitBytes, {id, false}); };
  EXPECT_EQ(found(1).verdict, Verdict::ok);
  EXPECT_EQ(found(3).verdict, Verdict::old_version);
  EXPECT_EQ(found(3).address, 8704u);
  EXPECT_EQ(found(4).verdict, Verdict::unverifiable);
  data[2].words[20] ^= 1;
  EXPECT_EQ(found(4).verdict, Verdict::corrupt);
}

}  // namespace
}  // namespace doorbell::pattern
