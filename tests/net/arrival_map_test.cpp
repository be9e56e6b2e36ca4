// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "net/flow/arrival_map.hpp"

namespace doorbell::net {
namespace {

constexpr u64 kWrap = u64{1} << 48;

TEST(ArrivalMap, TellsFirstFromDuplicate) {
  ArrivalMap m(0, 64);
  EXPECT_EQ(m.note(0).arrival, Arrival::first);
  EXPECT_EQ(m.note(0).arrival, Arrival::duplicate);
  EXPECT_EQ(m.note(5).arrival, Arrival::first);
  const auto behind = m.note(3);
  EXPECT_EQ(behind.arrival, Arrival::first);
  EXPECT_FALSE(behind.in_order);
  EXPECT_EQ(m.unique(), 3u);
  EXPECT_EQ(m.lost(6), 3u) << "1, 2 and 4";
  EXPECT_EQ(m.lost(10), 7u);
  EXPECT_EQ(m.beyond(4), 1u);
}

TEST(ArrivalMap, KnowsNothingBeforeItsStart) {
  ArrivalMap m(1000, 128);
  EXPECT_EQ(m.note(999).arrival, Arrival::misplaced);
  EXPECT_EQ(m.note(1000).arrival, Arrival::first);
  EXPECT_EQ(m.note(999).arrival, Arrival::misplaced);
  EXPECT_EQ(m.lost(1001), 0u);
}

TEST(ArrivalMap, WhatIsOutOfReachIsMisplaced) {
  ArrivalMap m(0, 64);
  EXPECT_EQ(m.note(ArrivalMap::kReach).arrival, Arrival::misplaced);
  EXPECT_EQ(m.note(kWrap - 1).arrival, Arrival::misplaced);
  EXPECT_EQ(m.note(700).arrival, Arrival::first);
  EXPECT_EQ(m.note(1).arrival, Arrival::misplaced) << "it has left the map as lost";
  EXPECT_EQ(m.lost(701), 700u);
}

/// All before a packet that is far ahead is lost, once a second packet says so.
TEST(ArrivalMap, GoesOnBehindAGapBeyondItsReach) {
  for (const bool runs : {false, true}) {
    ArrivalMap m(0, 128);
    EXPECT_EQ(m.note(0).arrival, Arrival::first);
    const u64 far = ArrivalMap::kReach * 5 + 17;
    EXPECT_EQ(m.note(far).arrival, Arrival::misplaced);
    EXPECT_EQ(m.note(1).arrival, Arrival::first) << "one alone moves nothing";
    EXPECT_EQ(m.note(far).arrival, Arrival::misplaced) << "the same one again";
    const auto next = m.note(far + 1);
    EXPECT_EQ(next.arrival, Arrival::first);
    EXPECT_EQ(next.number, far + 1);
    if (runs) EXPECT_EQ(m.note_newer(far + 2, 50), far + 2);
    else
      for (u64 n = far + 2; n < far + 52; ++n) EXPECT_EQ(m.note(n).arrival, Arrival::first);
    EXPECT_EQ(m.note(far + 40).arrival, Arrival::duplicate);
    EXPECT_EQ(m.note(5).arrival, Arrival::misplaced);
    EXPECT_EQ(m.unique(), 53u);
    EXPECT_EQ(m.lost(far + 60), far + 60 - 53);
    EXPECT_EQ(m.beyond(far + 50), 2u);
  }
}

/// Random loss, duplication and disorder against a plain set, at starts around which numbers wrap.
TEST(ArrivalMap, AgreesWithASet) {
  for (const u64 start : {u64{0}, u64{63}, u64{1000}, kWrap - 3000, (u64{1} << 32) - 2000, kWrap * 5 - 1}) {
    std::mt19937_64 random(start + 1);
    ArrivalMap m(start, 1024);
    std::set<u64> seen;
    u64 duplicates = 0;
    constexpr u64 kSent = 20'000;
    for (u64 i = 0; i < kSent; ++i) {
      if (random() % 10 == 0) continue;
      const u64 n = start + (random() % 4 == 0 && i > 40 ? i - random() % 40 : i);
      const auto noted = m.note(n & (kWrap - 1));
      const bool first = seen.insert(n).second;
      ASSERT_EQ(noted.arrival, first ? Arrival::first : Arrival::duplicate) << start << " " << i;
      ASSERT_EQ(noted.number, n);
      if (!first) ++duplicates;
    }
    EXPECT_EQ(m.unique(), seen.size());
    EXPECT_EQ(m.lost(start + kSent), kSent - seen.size());
    EXPECT_EQ(m.beyond(start + kSent), 0u);
    EXPECT_GT(duplicates, 0u);
  }
}

/// Runs of packets as a whole, beside a map that is told of each one.
TEST(ArrivalMap, ARunIsNotedLikeItsPackets) {
  for (const u64 start : {u64{0}, u64{63}, kWrap - 3000, kWrap * 5 - 1}) {
    std::mt19937_64 random(start + 2);
    ArrivalMap by_runs(start, 1024), by_packets(start, 1024);
    u64 next = start, newer = 0, others = 0;
    for (u32 i = 0; i < 3000; ++i) {
      // With gaps before some, and some that begin among those that have been there.
      const u64 n = next + random() % 3 * 5 - (random() % 4 == 0 && next > start + 40 ? random() % 40 : 0);
      const u32 count = 1 + static_cast<u32>(random() % 200);
      const u64 first = by_runs.note_newer(n & (kWrap - 1), count);
      for (u32 k = 0; k < count; ++k) {
        const auto noted = by_packets.note((n + k) & (kWrap - 1));
        if (first == ArrivalMap::kNotNewer) {
          const auto same = by_runs.note((n + k) & (kWrap - 1));
          ASSERT_EQ(same.arrival, noted.arrival);
          ASSERT_EQ(same.number, noted.number);
          continue;
        }
        ASSERT_EQ(noted.arrival, Arrival::first);
        ASSERT_TRUE(noted.in_order);
        ASSERT_EQ(noted.number, first + k);
      }
      ++(first == ArrivalMap::kNotNewer ? others : newer);
      next = by_packets.next();
      ASSERT_EQ(by_runs.next(), next);
      ASSERT_EQ(by_runs.unique(), by_packets.unique());
      ASSERT_EQ(by_runs.lost(next + 10), by_packets.lost(next + 10));
    }
    EXPECT_GT(newer, 1000u);
    EXPECT_GT(others, 100u);
  }
}

TEST(ArrivalMap, ARunThatDoesNotFitIsNotNoted) {
  ArrivalMap m(0, 128);
  EXPECT_EQ(m.note_newer(0, 65), ArrivalMap::kNotNewer) << "longer than the map";
  EXPECT_EQ(m.note_newer(ArrivalMap::kReach - 10, 20), ArrivalMap::kNotNewer) << "its end is out of reach";
  EXPECT_EQ(m.note_newer(kWrap - 1, 2), ArrivalMap::kNotNewer) << "it begins before the start";
  EXPECT_EQ(m.unique(), 0u);
  EXPECT_EQ(m.note_newer(3, 64), 3u);
  EXPECT_EQ(m.lost(67), 3u);
}

}  // namespace
}  // namespace doorbell::net
