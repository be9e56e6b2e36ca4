// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "eventually.hpp"
#include "net/raw/spsc_ring.hpp"
#include "sanitized.hpp"

namespace doorbell::net {
namespace {

/// Rings of both index widths, whose positions overflow at once, soon, and never.
template <class Fn>
void with_rings(u32 capacity, Fn fn) {
  for (const u32 start : {0u, ~0u, ~0u - 5}) {
    SCOPED_TRACE(start);
    SpscRing<u32, u32> ring(capacity, start);
    fn(ring);
  }
  for (const u64 start : {u64{0}, ~u64{0} - 2, u64{0xffffffff}}) {
    SCOPED_TRACE(start);
    SpscRing<u32, u64> ring(capacity, start);
    fn(ring);
  }
}

TEST(SpscRing, HoldsItsCapacityInOrderAcrossTheOverflowOfItsPositions) {
  with_rings(8, [](auto& ring) {
    u32 pushed = 0, popped = 0, out[16];
    for (u32 n = 1; n < 40; ++n) {
      std::vector<u32> in(n % 11 + 1);
      std::iota(in.begin(), in.end(), pushed);
      const u32 inside = pushed - popped, size = static_cast<u32>(in.size());
      EXPECT_EQ(ring.space(size), std::min(size, 8 - inside));
      pushed += ring.push(in.data(), size);
      EXPECT_EQ(pushed - popped, std::min(inside + size, 8u));
      const u32 want = n % 5, got = ring.pop(out, want);
      EXPECT_EQ(got, std::min(want, pushed - popped));
      for (u32 i = 0; i < got; ++i) ASSERT_EQ(out[i], popped++);
    }
    EXPECT_EQ(ring.pop(out, 16), pushed - popped);
    EXPECT_EQ(ring.pop(out, 16), 0u);
    EXPECT_EQ(ring.push(out, 0), 0u);
  });
}

TEST(SpscRing, RoomComesBackWithReleaseAndPlacesAgree) {
  with_rings(4, [](auto& ring) {
    const u32 in[] = {10, 11, 12, 13, 14, 15};
    u32 out[6];
    const u32 first = ring.place(0);
    EXPECT_EQ(ring.next_place(0), first);
    EXPECT_EQ(ring.push(in, 6), 4u);
    EXPECT_EQ(ring.place(0), first);
    EXPECT_EQ(ring.take(out, 3), 3u);
    EXPECT_EQ(ring.next_place(0), (first + 3) % 4);
    EXPECT_EQ(ring.space(9), 0u);
    ring.release(2);
    EXPECT_EQ(ring.space(9), 2u);
    EXPECT_EQ(ring.push(in + 4, 2), 2u);
    EXPECT_EQ(ring.available(9), 3u);
    EXPECT_EQ(ring.take(out + 3, 9), 3u);
    EXPECT_EQ(std::vector<u32>(out, out + 6), std::vector<u32>(in, in + 6));
    ring.release(4);
    EXPECT_EQ(ring.space(9), 4u);
  });
}

TEST(SpscRing, RefusesCapacitiesThatItsPositionsCannotTellApart) {
  EXPECT_THROW((SpscRing<u32>(12)), std::invalid_argument);
  EXPECT_THROW((SpscRing<u32>(0)), std::invalid_argument);
  EXPECT_THROW((SpscRing<u32, u16>(65536)), std::invalid_argument);
  SpscRing<u32, u16> largest(32768, 65530);
  EXPECT_EQ(largest.space(~0u), 32768u);
  SpscRing<u8> one(1);
  const u8 in[] = {1, 2};
  EXPECT_EQ(one.push(in, 2), 1u);
}

template <class Index>
void expect_all_in_order(u32 capacity, Index start, u64 total) {
  struct Element {
    u64 sequence, inverse;
  };
  SpscRing<Element, Index> ring(capacity, start);
  std::thread producer([&] {
    std::vector<Element> batch(32);
    u64 sent = 0;
    const bool all = test::eventually([&] {
      // On a busy machine each turn of the scheduler is dear: on until the ring is full.
      for (u32 pushed = 1; pushed > 0 && sent < total; sent += pushed) {
        const u32 n = static_cast<u32>(std::min<u64>(sent % 32 + 1, total - sent));
        for (u32 i = 0; i < n; ++i) batch[i] = {sent + i, ~(sent + i)};
        pushed = ring.push(batch.data(), n);
      }
      return sent == total;
    });
    EXPECT_TRUE(all);
  });
  std::vector<Element> out(32);
  u64 got = 0, wrong = 0, held = 0;
  EXPECT_TRUE(test::eventually([&] {
    for (u32 n = 1; n > 0 && got < total;) {
      n = ring.take(out.data(), static_cast<u32>(got % 31 + 1));
      for (u32 i = 0; i < n; ++i, ++got) wrong += out[i].sequence != got || out[i].inverse != ~got ? 1 : 0;
      held += n;
      // Some of what was taken is kept for a while.
      if (held > capacity / 2 || got == total || n == 0)
        ring.release(static_cast<u32>(std::exchange(held, 0)));
    }
    return got == total;
  }));
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(ring.available(1), 0u);
}

TEST(SpscRing, TwoThreadsLoseAndRepeatNothing) {
  const u64 total = test::kSanitized ? 20'000 : 100'000;
  expect_all_in_order<u64>(1024, 0, total);
  expect_all_in_order<u32>(1024, ~0u - 1000, total);
  // Each hand-over may cost a turn of the scheduler, when the two threads share a core.
  expect_all_in_order<u64>(2, ~u64{0} - 100, 200);
}

}  // namespace
}  // namespace doorbell::net
