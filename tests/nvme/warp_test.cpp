// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The collective code with one lane, 8 and 32 lanes: all give the same submission bytes, doorbell values,
// verdicts and counts.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "emulated_warp.hpp"
#include "nvme/io_loop.hpp"
#include "ring_controller.hpp"

namespace doorbell {
namespace {

template <u32 N>
void check_primitives() {
  std::array<std::atomic<u32>, N> arrived{};
  collective<N>([&](const auto& warp) {
    const u32 lane = warp.lane();
    for (u32 round = 0; round < 20; ++round) {
      ASSERT_EQ(warp.ballot(lane % 3 == round % 3), [&] {
        u64 m = 0;
        for (u32 i = 0; i < N; ++i) m |= u64{i % 3 == round % 3} << i;
        return m;
      }());
      ASSERT_EQ(warp.shfl(lane * 10 + round, (lane + round) % N), (lane + round) % N * 10 + round);
      ASSERT_EQ(warp.shfl(lane + 0.5, N - 1), N - 0.5);
      ASSERT_EQ(reduce_add(warp, u64{lane} + 1), u64{N} * (N + 1) / 2);
      ASSERT_EQ(reduce_min(warp, lane + 7), 7u);
      ASSERT_EQ(reduce_max(warp, lane), N - 1);
      const u64 mask = warp.ballot(lane % 2 == 0);
      ASSERT_EQ(rank_in(warp, mask), (lane + 1) / 2);
      arrived[lane].store(round + 1, std::memory_order_relaxed);
      warp.sync();
      for (u32 i = 0; i < N; ++i) ASSERT_GE(arrived[i].load(std::memory_order_relaxed), round + 1);
      warp.sync();
    }
  });
}

TEST(Warp, Primitives) {
  check_primitives<1>();
  check_primitives<8>();
  check_primitives<32>();
  EXPECT_EQ(leading_run(0), 0u);
  EXPECT_EQ(leading_run(0b1011), 2u);
  EXPECT_EQ(leading_run(~u64{0}), 64u);
  for (u32 bit = 0; bit < 64; ++bit) {
    EXPECT_EQ(lowest_bit(u64{1} << bit), bit);
    EXPECT_EQ(lowest_bit(~u64{0} << bit), bit);
  }
}

// --- pattern ------------------------------------------------------------------------------------

using pattern::Identity;
using pattern::kUnitBytes;
using pattern::kUnitWords;

template <u32 N>
void check_pattern() {
  constexpr u64 kUnits = 11;
  struct alignas(16) Units {
    u32 words[kUnits * kUnitWords] = {};
  };
  const Identity id = {77, 1 << 20, 3};
  auto want = std::make_unique<Units>();
  auto got = std::make_unique<Units>();
  pattern::fill(OneLane{}, want->words, sizeof *want, id);
  collective<N>([&](const auto& warp) { pattern::fill(warp, got->words, sizeof *got, id); });
  ASSERT_EQ(std::memcmp(want.get(), got.get(), sizeof *want), 0);
  pattern::poison(OneLane{}, want->words, 7 * kUnitBytes);
  collective<N>([&](const auto& warp) { pattern::poison(warp, got->words, 7 * kUnitBytes); });
  ASSERT_EQ(std::memcmp(want.get(), got.get(), sizeof *want), 0);

  // Damage of every kind at random places: the same verdict and the same address from any number of lanes.
  std::mt19937_64 random(5);
  for (int round = 0; round < 40; ++round) {
    pattern::fill(OneLane{}, got->words, sizeof *got, id);
    for (u64 n = random() % 4; n > 0; --n) {
      u32* unit = got->words + random() % kUnits * kUnitWords;
      switch (random() % 5) {
        case 0:
          unit[random() % kUnitWords] ^= 1u << (random() % 32);
          break;
        case 1:
          pattern::make_unit(unit, {77, random() & ~u64{511}, 3});
          break;
        case 2:
          pattern::make_unit(unit, {77, id.address, 2});
          break;
        case 3:
          std::memset(unit, 0, kUnitBytes);
          break;
        default:
          pattern::poison(OneLane{}, unit, kUnitBytes);
      }
    }
    const pattern::Expect expect = {id, round % 4 != 3};
    const auto one = pattern::check(OneLane{}, got->words, sizeof *got, expect);
    collective<N>([&](const auto& warp) {
      const auto many = pattern::check(warp, got->words, sizeof *got, expect);
      ASSERT_EQ(many.verdict, one.verdict);
      ASSERT_EQ(many.address, one.address);
    });
  }
}

TEST(Warp, PatternBy8) {
  check_pattern<8>();
}
TEST(Warp, PatternBy32) {
  check_pattern<32>();
}

}  // namespace
}  // namespace doorbell

namespace doorbell::nvme {
namespace {

// --- posting and polling --------------------------------------------------------------------------

struct Trace {
  std::vector<u8> sq;          // the whole queue memory at the end
  std::vector<u32> tails;      // every value of the tail doorbell
  std::vector<u32> heads;      // every value of the head doorbell
  std::vector<u16> completed;  // cids in order
  u32 room = 0;
  friend bool operator==(const Trace&, const Trace&) = default;
};

/// Posts batches of changing size through a ring of `entries`, every one fetched and completed.
template <u32 N>
Trace post_and_poll(u32 entries, u32 most, u64 rounds) {
  RingController device(entries);
  Trace trace;
  collective<N>([&](const auto& warp) {
    using Warp = std::remove_cvref_t<decltype(warp)>;
    QueuePair<Warp> qp(device.memory());
    u64 serial = 0;
    for (u64 round = 0; round < rounds; ++round) {
      const u32 n = static_cast<u32>(1 + round * 7 % most);
      ASSERT_LE(n, qp.room());
      qp.post(warp, n, [&](u32 i) {
        Sqe e = io_command(IoOpcode::write, static_cast<u16>(serial + i), 1, (serial + i) << 20, 8,
                           serial + i, round);
        e.cdw15 = ~static_cast<u32>(serial + i);
        return e;
      });
      ASSERT_EQ(qp.ring(warp), 1u);
      warp.sync();
      if (warp.lane() == 0) {
        trace.tails.push_back(device.tail());
        while (device.announced() > 0) device.complete(device.fetch().cid, 0);
      }
      warp.sync();
      for (u32 seen = 0; seen < n;) {
        const auto p = qp.poll(warp);
        ASSERT_GT(p.count, 0u);
        ASSERT_LE(p.count, std::min(n - seen, Warp::size));
        for (u32 i = 0; i < p.count; ++i) {
          const auto cid = static_cast<u16>(warp.shfl(u32{p.mine.cid}, i));
          if (warp.lane() == 0) trace.completed.push_back(cid);
        }
        seen += p.count;
      }
      (void)qp.ring_cq(warp);
      warp.sync();
      if (warp.lane() == 0) trace.heads.push_back(device.cq_head());
      serial += n;
    }
    if (warp.lane() == 0) trace.room = qp.room();
  });
  trace.sq.resize(device.sq_bytes().size() * sizeof(Word16));
  std::memcpy(trace.sq.data(), device.sq_bytes().data(), trace.sq.size());
  return trace;
}

TEST(Warp, PostRingPoll) {
  for (const u32 entries : {2u, 3u, 7u, 8u, 9u, 33u, 64u, 100u}) {
    const u64 rounds = 12 + entries / 4;
    const Trace one = post_and_poll<1>(entries, entries - 1, rounds);
    EXPECT_EQ(one.room, entries - 1);
    EXPECT_TRUE(one == post_and_poll<8>(entries, entries - 1, rounds)) << entries;
    EXPECT_TRUE(one == post_and_poll<32>(entries, entries - 1, rounds)) << entries;
  }
}

}  // namespace
}  // namespace doorbell::nvme
