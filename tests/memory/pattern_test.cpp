// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The payload pattern and the order of addresses.

#include <doorbell/pattern.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "loop/permutation.hpp"

namespace doorbell::pattern {
namespace {

const OneLane lane;

struct alignas(16) Unit {
  u32 words[kUnitWords] = {};
  u8* bytes() { return reinterpret_cast<u8*>(words); }
};

Unit made(const Identity& id) {
  Unit u;
  make_unit(u.words, id);
  return u;
}

Verdict verdict(const Unit& u, const Identity& id, bool written = true) {
  return check(lane, u.words, kUnitBytes, {id, written}).verdict;
}

/// One step by the textbook: shift left, and where a one falls out, add the polynomial's lower terms.
u32 textbook_step(u32 s) {
  return (s << 1) ^ ((s >> 31) != 0 ? (u32{1} << 22 | 1u << 2 | 1u << 1 | 1u) : 0u);
}

TEST(Lfsr, AStepIsTheTextbooks) {
  std::mt19937 random(1);
  std::vector<u32> states = {0, 1, 2, 0x80000000u, 0xffffffffu, 0xffc00000u, 0x00400007u};
  for (int i = 0; i < 2000; ++i) states.push_back(static_cast<u32>(random()));
  for (const u32 s : states) ASSERT_EQ(step(s), textbook_step(s)) << s;
}

/// The state after 2^k steps is multiplication by x^(2^k): squaring tells the period without walking it.
u32 multiply(u32 a, u32 b) {
  u32 product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    product = textbook_step(product);
    if ((b >> bit & 1) != 0) product ^= a;
  }
  return product;
}

u32 power_of_x(u64 e) {
  u32 result = 1, base = 2;
  for (; e != 0; e >>= 1) {
    if ((e & 1) != 0) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

TEST(Lfsr, PeriodIsMaximal) {
  constexpr u64 kPeriod = (u64{1} << 32) - 1;
  EXPECT_EQ(power_of_x(kPeriod), 1u);
  for (const u64 prime : {3u, 5u, 17u, 257u, 65537u}) EXPECT_NE(power_of_x(kPeriod / prime), 1u) << prime;
}

TEST(Pattern, AUnitIsItsParts) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i) {
    const Identity id = {random(), random() & ~u64{511}, random()};
    const Unit u = made(id);
    for (u32 p = 0; p < kParts; ++p) {
      const Word16 part = make_part(id, p);
      ASSERT_EQ(std::memcmp(part.w, u.words + p * 4, 16), 0) << "part " << p;
    }
    EXPECT_TRUE(same_unit(u.words, id));
    EXPECT_TRUE(claimed(u.words) == id);
    EXPECT_EQ(u.words[0], kMagic);
    EXPECT_EQ(u.words[1], start_of(id));
    for (u32 w = kHeaderWords; w < kUnitWords; ++w) {
      const u32 expected = w % 4 == 0 ? u.words[w] : textbook_step(u.words[w - 1]);
      ASSERT_EQ(u.words[w], expected) << w;
    }
  }
}

TEST(Pattern, FillIsUnitAfterUnit) {
  std::vector<Unit> data(9);
  fill(lane, data.data(), data.size() * kUnitBytes, {5, 1 << 20, 9});
  for (u64 i = 0; i < data.size(); ++i) {
    EXPECT_TRUE(same_unit(data[i].words, {5, (1 << 20) + i * 512, 9}));
  }
  EXPECT_EQ(check(lane, data.data(), data.size() * kUnitBytes, {{5, 1 << 20, 9}}).verdict, Verdict::ok);
}

TEST(Pattern, EachClassIsTold) {
  const Identity id = {11, 8192, 7};
  EXPECT_EQ(verdict(made(id), id), Verdict::ok);
  EXPECT_EQ(verdict(made({11, 8192, 6}), id), Verdict::stale);  // an older generation
  EXPECT_EQ(verdict(made({12, 8192, 7}), id), Verdict::stale);  // another run's
  EXPECT_EQ(verdict(Unit{}, id), Verdict::stale);               // acknowledged, never written
  EXPECT_EQ(verdict(made({11, 8704, 7}), id), Verdict::misplaced);
  EXPECT_EQ(verdict(made({11, 8704, 3}), id), Verdict::misplaced);
  Unit u = made({11, 8704, 7});
  u.words[100] ^= 1;
  EXPECT_EQ(verdict(u, id), Verdict::corrupt);  // a damaged unit of another address is damage
  Unit poisoned = made({11, 8192, 6});
  poison(lane, poisoned.words, kUnitBytes);
  EXPECT_EQ(verdict(poisoned, id), Verdict::missing);
  Unit noise;
  for (u32 i = 0; i < kUnitWords; ++i) noise.words[i] = i * 2654435761u;
  EXPECT_EQ(verdict(noise, id), Verdict::corrupt);
  Unit ones;
  std::memset(ones.words, 0xff, sizeof ones.words);
  EXPECT_EQ(verdict(ones, id), Verdict::corrupt);
}

TEST(Pattern, BlocksOfAnotherRunVouchForThemselves) {
  const Identity id = {11, 8192, 7};
  EXPECT_EQ(verdict(made({99, 8192, 1}), id, false), Verdict::ok);
  EXPECT_EQ(verdict(made({99, 8704, 1}), id, false), Verdict::misplaced);
  EXPECT_EQ(verdict(Unit{}, id, false), Verdict::unverifiable);
  Unit u = made({99, 8192, 1});
  u.words[50] ^= 0x100;
  EXPECT_EQ(verdict(u, id, false), Verdict::corrupt);
  Unit poisoned;
  poison(lane, poisoned.words, kUnitBytes);
  EXPECT_EQ(verdict(poisoned, id, false), Verdict::missing);
}

TEST(Pattern, EverySingleByteIsGuarded) {
  const Identity id = {0x1234, 4096, 3};
  const Unit good = made(id);
  for (u32 at = 0; at < kUnitBytes; ++at) {
    for (u32 flip = 1; flip < 256; ++flip) {
      Unit bad = good;
      bad.bytes()[at] ^= static_cast<u8>(flip);
      ASSERT_EQ(verdict(bad, id), Verdict::corrupt) << "byte " << at << " xor " << flip;
    }
  }
}

TEST(Pattern, TheWorstUnitOfAnIoIsReported) {
  const Identity id = {1, 0, 5};
  std::vector<Unit> data(8);
  const auto run = [&] { return check(lane, data.data(), data.size() * kUnitBytes, {id}); };
  fill(lane, data.data(), data.size() * kUnitBytes, id);
  data[6] = made({1, 6 * 512, 4});
  EXPECT_EQ(run().verdict, Verdict::stale);
  EXPECT_EQ(run().address, 6u * 512);
  data[2].words[9] ^= 1;
  EXPECT_EQ(run().verdict, Verdict::corrupt);
  EXPECT_EQ(run().address, 2u * 512);
  data[1] = made({1, 1 << 20, 5});
  EXPECT_EQ(run().verdict, Verdict::corrupt);  // misplaced is the lesser
  EXPECT_EQ(run().address, 2u * 512);
}

/// The poison is four words; where some of them are others, something has arrived.
TEST(Pattern, PartOfThePoisonIsNoPoison) {
  for (u32 mask = 0; mask < 16; ++mask) {
    std::array<u32, pattern::kUnitWords> unit;
    unit.fill(0x12345678);
    for (u32 w = 0; w < 4; ++w)
      if ((mask >> w & 1) != 0) unit[w] = pattern::kPoison;
    EXPECT_EQ(pattern::classify(unit.data(), {.id = {1, 4096, 2}}),
              mask == 15 ? pattern::Verdict::missing : pattern::Verdict::corrupt)
        << mask;
  }
}

/// Where something is known to have been written, nothing is no excuse; and data of no place is old data.
TEST(Pattern, StrictChecks) {
  using pattern::Verdict;
  const pattern::Identity here{1, 4096, 2};
  std::array<u32, pattern::kUnitWords> unit{};
  const auto verdict = [&](bool written, bool strict) {
    return pattern::classify(unit.data(), {.id = here, .written = written, .strict = strict});
  };
  EXPECT_EQ(verdict(false, false), Verdict::unverifiable);
  EXPECT_EQ(verdict(false, true), Verdict::stale);
  EXPECT_EQ(verdict(true, false), Verdict::stale);
  unit.fill(7);
  EXPECT_EQ(verdict(false, false), Verdict::unverifiable);
  EXPECT_EQ(verdict(false, true), Verdict::corrupt);
  pattern::make_unit(unit.data(), {9, 4096, 77});  // an earlier run's, whatever its seed
  EXPECT_EQ(verdict(false, false), Verdict::ok);
  EXPECT_EQ(verdict(false, true), Verdict::ok);
  EXPECT_EQ(verdict(true, false), Verdict::stale);
  unit[0] ^= 1;  // its magic
  EXPECT_EQ(verdict(false, false), Verdict::corrupt);
  EXPECT_EQ(verdict(false, true), Verdict::corrupt);
  pattern::make_unit(unit.data(), {9, 8192, 77});
  EXPECT_EQ(verdict(false, false), Verdict::misplaced);
  EXPECT_EQ(verdict(false, true), Verdict::misplaced);
  pattern::make_unit(unit.data(), {9, pattern::kNoAddress, 0});
  EXPECT_EQ(verdict(false, false), Verdict::unverifiable);
  EXPECT_EQ(verdict(false, true), Verdict::stale);
  EXPECT_EQ(verdict(true, false), Verdict::stale);
}

/// Where nothing is known to have been written, a unit that is nearly one of ours is still a damaged one.
TEST(Pattern, WhatIsNearlyOursIsCorrupt) {
  using pattern::Verdict;
  const auto verdict = [](const Unit& u) {
    return pattern::classify(u.words, {.id = {1, 4096, 2}, .written = false});
  };
  Unit sound{};
  pattern::make_unit(sound.words, {9, 4096, 77});
  EXPECT_EQ(verdict(sound), Verdict::ok);
  for (u32 bit = 0; bit < pattern::kUnitBytes * 8; ++bit) {
    Unit u = sound;
    u.words[bit / 32] ^= 1u << bit % 32;
    ASSERT_EQ(verdict(u), Verdict::corrupt) << bit;
  }
  // All but two parts, of 16 bytes each, one after the other.
  for (u32 p = pattern::kHeaderParts; p + 1 < pattern::kParts; ++p) {
    Unit u{};
    for (u32 w = p * 4; w < (p + 2) * 4; ++w) u.words[w] = sound.words[w];
    ASSERT_EQ(verdict(u), Verdict::corrupt) << p;
    u.words[p * 4 + 7] ^= 1;
    ASSERT_EQ(verdict(u), Verdict::unverifiable) << p;
  }
  // Other data in which each word is the step of the one before: a table of masks.
  Unit masks{};
  for (u32 w = 0; w < pattern::kUnitWords; ++w) masks.words[w] = 1u << w % 32;
  EXPECT_EQ(verdict(masks), Verdict::unverifiable);
}

/// Units of two writes in one I/O, where all that is known is that one write made it.
TEST(Pattern, UnitsOfTwoWritesAreNotOneWrite) {
  using pattern::Verdict;
  std::vector<Unit> data(4);
  fill(lane, data.data(), data.size() * kUnitBytes, {1, 4096, 5});
  const auto verdict = [&](bool strict, bool one_write) {
    return check(lane, data.data(), data.size() * kUnitBytes,
                 {.id = {1, 4096, 5}, .written = false, .strict = strict, .one_write = one_write});
  };
  EXPECT_EQ(verdict(true, true).verdict, Verdict::ok);
  for (const Identity& other : {Identity{1, 4096 + 1024, 6}, Identity{2, 4096 + 1024, 5}}) {
    make_unit(data[2].words, other);
    EXPECT_EQ(verdict(true, true).verdict, Verdict::stale);
    EXPECT_EQ(verdict(true, true).address, 4096u + 1024u);
    EXPECT_EQ(verdict(false, true).verdict, Verdict::unverifiable);
    EXPECT_EQ(verdict(true, false).verdict, Verdict::ok);
  }
}

TEST(Pattern, TheFirstOfSeveralEquallyBadUnitsIsReported) {
  const Identity id = {1, 0, 5};
  std::vector<Unit> data(8);
  fill(lane, data.data(), data.size() * kUnitBytes, id);
  for (const u64 at : {7u, 6u, 4u, 3u, 1u, 0u}) {  // within what is compared at once, and beyond it
    data[at].words[9] ^= 1;
    const Checked found = check(lane, data.data(), data.size() * kUnitBytes, {id});
    EXPECT_EQ(found.verdict, Verdict::corrupt);
    EXPECT_EQ(found.address, at * 512);
  }
}

TEST(Pattern, PoisonMarksEveryUnitAndNothingElse) {
  std::vector<Unit> data(5);
  fill(lane, data.data(), data.size() * kUnitBytes, {1, 0, 1});
  const std::vector<Unit> before = data;
  poison(lane, data.data(), 3 * kUnitBytes);
  for (u64 i = 0; i < data.size(); ++i) {
    for (u32 w = 0; w < kUnitWords; ++w)
      ASSERT_EQ(data[i].words[w], i < 3 && w < 4 ? kPoison : before[i].words[w]);
  }
}

}  // namespace
}  // namespace doorbell::pattern

namespace doorbell {
namespace {

void expect_bijection(u64 n, u64 seed) {
  const Permutation p(n, seed);
  std::vector<bool> hit(n);
  for (u64 i = 0; i < n; ++i) {
    const u64 to = p(i);
    ASSERT_LT(to, n);
    ASSERT_FALSE(hit[to]) << n << ": " << i << " and another go to " << to;
    ASSERT_EQ(p.index_of(to), i) << n;
    hit[to] = true;
  }
}

TEST(Permutation, IsABijection) {
  for (u64 n = 1; n <= 5000; ++n) expect_bijection(n, n * 77);
  for (const u64 n : {65535u, 65536u, 65537u, 1'000'003u, (1u << 20) + 1}) expect_bijection(n, 5);
}

TEST(Permutation, LargeDomainsStayInsideAndApart) {
  for (const u64 n : {(u64{1} << 40) + 1, (u64{1} << 62) - 1, (u64{1} << 63) + 5, ~u64{0}}) {
    const Permutation p(n, 9);
    std::set<u64> seen;
    for (u64 i = 0; i < 20'000; ++i) {
      const u64 from = i * (n / 20'000);
      const u64 to = p(from);
      ASSERT_LT(to, n);
      ASSERT_EQ(p.index_of(to), from);
      ASSERT_TRUE(seen.insert(to).second);
    }
  }
}

TEST(Permutation, DependsOnTheSeedAndMixes) {
  const Permutation a(10'000, 1), b(10'000, 2);
  u64 same = 0, fixed = 0, neighbours = 0;
  for (u64 i = 0; i < 10'000; ++i) {
    same += a(i) == b(i) ? 1u : 0u;
    fixed += a(i) == i ? 1u : 0u;
    if (i > 0) neighbours += a(i) == a(i - 1) + 1 ? 1u : 0u;
  }
  EXPECT_LT(same, 20u);
  EXPECT_LT(fixed, 20u);
  EXPECT_LT(neighbours, 20u);
}

}  // namespace
}  // namespace doorbell
