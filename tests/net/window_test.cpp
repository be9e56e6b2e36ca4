// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "errors.hpp"
#include "net/assembly/window.hpp"
#include "net/window_reference.hpp"

namespace doorbell::net {
namespace {

using test::ReferenceWindow;
using test::ReferenceWindows;

/// A tracker with a list of what it has closed.
struct Windows {
  explicit Windows(const WindowShape& shape) : tracker(shape) {}

  auto closer() {
    return [this](const ClosedWindow& c) {
      ReferenceWindow w{c.index, c.why, c.packets, {}};
      for (u32 i = 0; i < tracker.shape().packets; ++i)
        if ((c.bits[i / 64] >> (i % 64) & 1) != 0) w.arrived.insert(i);
      EXPECT_EQ(w.arrived.size(), c.arrived);
      EXPECT_EQ(c.missing(), c.packets - c.arrived);
      EXPECT_EQ(c.ring, c.index % tracker.shape().open);
      EXPECT_EQ(c.first_sequence,
                (tracker.shape().first_sequence + c.index * tracker.shape().packets) & kSequenceMask);
      closed.push_back(std::move(w));
    };
  }
  Placing place(u64 sequence, u64 now_ns = 0) {
    last = tracker.place(sequence, now_ns, closer());
    if (tracker.full()) tracker.close_full(closer());
    return last.what;
  }
  /// "0f 1p 2t 3e": the closed windows and why.
  std::string reasons() const {
    std::string out;
    for (const ReferenceWindow& w : closed) {
      out += (out.empty() ? "" : " ") + std::to_string(w.index) + "fpte"[static_cast<u32>(w.why)];
    }
    return out;
  }

  WindowTracker tracker;
  Placement last;
  std::vector<ReferenceWindow> closed;
};

TEST(Window, PlacesByEpoch) {
  Windows w({.packets = 8, .open = 3});
  EXPECT_EQ(w.place(10), Placing::placed);
  EXPECT_EQ(w.last.window, 1U);
  EXPECT_EQ(w.last.slot, 2U);
  EXPECT_EQ(w.last.ring, 1U);
  EXPECT_TRUE(w.last.first);
  EXPECT_EQ(w.place(9), Placing::placed);
  EXPECT_TRUE(w.last.out_of_order);
  EXPECT_FALSE(w.last.first);
  EXPECT_EQ(w.place(3), Placing::placed);
  EXPECT_EQ(w.last.window, 0U);
  EXPECT_EQ(w.place(3), Placing::duplicate);
  EXPECT_TRUE(w.closed.empty());
  EXPECT_EQ(w.tracker.counts().out_of_order, 2U);
}

TEST(Window, ALostPacketShiftsNothing) {
  Windows w({.packets = 4, .open = 2});
  for (u64 n = 0; n < 16; ++n) {
    if (n == 5) continue;
    EXPECT_EQ(w.place(n), Placing::placed);
  }
  w.tracker.finish(w.closer());
  EXPECT_EQ(w.reasons(), "0f 1p 2f 3f");
  EXPECT_EQ(w.closed[1].arrived, (std::set<u32>{0, 2, 3}));
  EXPECT_EQ(w.tracker.counts().missing, 1U);
}

TEST(Window, FullWindowsWaitForOlderOnes) {
  Windows w({.packets = 2, .open = 4});
  for (const u64 n : {2, 3, 6, 7, 4, 5}) EXPECT_EQ(w.place(n), Placing::placed);
  EXPECT_TRUE(w.closed.empty());
  EXPECT_EQ(w.place(3), Placing::duplicate) << "full, but not delivered";
  w.place(1), w.place(0);
  EXPECT_EQ(w.reasons(), "0f 1f 2f 3f");
  EXPECT_EQ(w.place(3), Placing::late);
}

TEST(Window, APushClosesWithGapsAndFreesWhatIsFullBehind) {
  Windows w({.packets = 2, .open = 3});
  for (const u64 n : {0, 2, 3, 4, 5}) w.place(n);
  EXPECT_EQ(w.place(6), Placing::placed);
  EXPECT_EQ(w.reasons(), "0p 1f 2f");
  EXPECT_EQ(w.last.window, 3U);
  EXPECT_EQ(w.place(1), Placing::late);
}

TEST(Window, AJumpDeliversEachWindowOnceAlsoWithoutPackets) {
  Windows w({.packets = 2, .open = 2});
  w.place(1);
  EXPECT_EQ(w.place(13), Placing::placed);
  EXPECT_EQ(w.reasons(), "0p 1p 2p 3p 4p");
  for (std::size_t i = 1; i < w.closed.size(); ++i) EXPECT_TRUE(w.closed[i].arrived.empty());
  EXPECT_EQ(w.tracker.counts().missing, 9U);
}

TEST(Window, AJumpOfMoreThanAMillionWindowsIsMisplaced) {
  Windows w({.packets = 4, .open = 2, .first_sequence = kSequenceMask - 1});
  const auto sequence = [](u64 window) { return (kSequenceMask - 1 + window * 4 + 3) & kSequenceMask; };
  w.place(sequence(5));
  const u64 oldest = w.tracker.oldest();
  EXPECT_EQ(w.place(sequence(oldest + kMaxWindowJump + 1)), Placing::misplaced);
  EXPECT_EQ(w.tracker.oldest(), oldest) << "nothing was closed";
  u64 closed = 0;
  EXPECT_EQ(
      w.tracker.place(sequence(oldest + kMaxWindowJump), 0, [&](const ClosedWindow&) { ++closed; }).what,
      Placing::placed);
  EXPECT_EQ(closed, kMaxWindowJump - 1);
}

TEST(Window, BeforeTheFirstIsMisplacedBehindIsLate) {
  for (const u64 first : {u64{0}, u64{1}, kSequenceMask - 2, u64{12345}}) {
    Windows w({.packets = 4, .open = 2, .first_sequence = first});
    EXPECT_EQ(w.place((first - 1) & kSequenceMask), Placing::misplaced);
    for (u64 n = 0; n < 8; ++n) EXPECT_EQ(w.place((first + n) & kSequenceMask), Placing::placed);
    EXPECT_EQ(w.place(first), Placing::late);
    EXPECT_EQ(w.place((first + 7) & kSequenceMask), Placing::late);
    EXPECT_EQ(w.place((first - 1) & kSequenceMask), Placing::misplaced);
    EXPECT_EQ(w.reasons(), "0f 1f");
  }
}

TEST(Window, GoesOnBeyondTheWrap) {
  // 1000 divides no power of two: slots must go on evenly where sequences wrap.
  const WindowShape shape{.packets = 1000, .open = 4, .first_sequence = kSequenceMask - 2500};
  Windows w(shape);
  for (u64 n = 0; n < 6000; ++n) {
    ASSERT_EQ(w.place((shape.first_sequence + n) & kSequenceMask), Placing::placed);
    ASSERT_EQ(w.last.window, n / 1000);
    ASSERT_EQ(w.last.slot, n % 1000);
    ASSERT_FALSE(w.last.out_of_order);
  }
  EXPECT_EQ(w.reasons(), "0f 1f 2f 3f 4f 5f");
}

TEST(Window, ATimeoutClosesTheWindowAndThoseBeforeIt) {
  Windows w({.packets = 2, .open = 4, .timeout_ns = 100});
  EXPECT_EQ(w.tracker.next_timeout_ns(), ~u64{0});
  w.place(2, 1000);  // window 1; of window 0 nothing ever comes
  w.place(4, 1050), w.place(5, 1060);
  EXPECT_EQ(w.tracker.next_timeout_ns(), 1100U);
  w.tracker.expire(1099, w.closer());
  EXPECT_TRUE(w.closed.empty());
  w.tracker.expire(1100, w.closer());
  EXPECT_EQ(w.reasons(), "0t 1t 2f");
  EXPECT_EQ(w.place(3, 1101), Placing::late);
  EXPECT_EQ(w.tracker.next_timeout_ns(), ~u64{0});
  w.tracker.expire(~u64{0}, w.closer());
  EXPECT_EQ(w.closed.size(), 3U);
}

TEST(Window, FinishDeliversUpToTheLastPacketOfTheStream) {
  Windows seen({.packets = 4, .open = 2});
  seen.place(5);
  seen.tracker.finish(seen.closer());
  EXPECT_EQ(seen.reasons(), "0e 1e");
  EXPECT_EQ(seen.closed[1].packets, 2U) << "the stream is not known to be longer";

  Windows told({.packets = 4, .open = 2});
  told.place(5);
  told.tracker.finish(told.closer(), 15);
  EXPECT_EQ(told.reasons(), "0e 1e 2e 3e");
  EXPECT_EQ(told.closed[3].packets, 3U);
  EXPECT_EQ(told.tracker.counts().missing, 14U);

  Windows nothing({.packets = 4, .open = 2});
  nothing.tracker.finish(nothing.closer());
  EXPECT_TRUE(nothing.closed.empty());
}

TEST(Window, GoesOnBehindFinish) {
  Windows w({.packets = 4, .open = 2});
  w.place(1);
  w.tracker.finish(w.closer());
  EXPECT_EQ(w.place(2), Placing::late);
  EXPECT_EQ(w.place(4), Placing::placed);
  EXPECT_EQ(w.last.window, 1U);
}

TEST(Window, RefusesNumbersOutOfRange) {
  using doorbell::test::error_of;
  using doorbell::test::expect_says;
  expect_says(error_of([] { WindowTracker t({.packets = 0}); }), "1 to 1048576 packets");
  expect_says(error_of([] { WindowTracker t({.packets = kMaxWindowPackets + 1}); }), "1048577 packets");
  expect_says(error_of([] { WindowTracker t({.open = 0}); }), "1 to 64 windows");
  expect_says(error_of([] { WindowTracker t({.open = 65}); }), "1 to 64 windows");
  expect_says(error_of([] { WindowTracker t({.first_sequence = kSequenceMask + 1}); }), "48 bits");
}

/// Packets of a stream with losses, copies, delays and strays, in the order of their arrival.
std::vector<i64> damaged_stream(std::mt19937_64& random, const WindowShape& shape, u32 packets) {
  const auto below = [&](u64 n) { return random() % n; };
  std::vector<std::pair<u64, i64>> arrivals;  // when, which
  const u64 far = 1 + below(u64{2} * shape.packets * shape.open);
  for (u32 n = 0; n < packets; ++n) {
    const u64 fate = below(100);
    if (fate < 5) continue;
    const auto delay = [&] { return below(100) < 20 ? below(far) : u64{0}; };
    arrivals.emplace_back(n + delay(), n);
    if (fate < 10) arrivals.emplace_back(n + delay(), n);
    if (fate == 11) n += static_cast<u32>(below(u64{3} * shape.packets * shape.open));  // a burst of losses
    if (fate == 12) arrivals.emplace_back(n, -1 - static_cast<i64>(below(50)));
    if (fate == 13)
      arrivals.emplace_back(n, static_cast<i64>((u64{2} * kMaxWindowJump + below(100)) * shape.packets));
  }
  std::ranges::stable_sort(arrivals, {}, &std::pair<u64, i64>::first);
  std::vector<i64> out;
  for (const auto& a : arrivals) out.push_back(a.second);
  return out;
}

TEST(WindowRandom, DecidesAsTheReferenceDoes) {
  for (u32 round = 0; round < 300; ++round) {
    std::mt19937_64 random(round);
    WindowShape shape;
    shape.packets = 1 + static_cast<u32>(random() % (round % 3 == 0 ? 3 : 150));
    shape.open = 1 + static_cast<u32>(random() % 6);
    shape.timeout_ns = random() % 2 == 0 ? 0 : 1 + random() % 500;
    const u64 starts[] = {0, random() & kSequenceMask, kSequenceMask - random() % 1000};
    shape.first_sequence = starts[random() % 3];
    Windows w(shape);
    ReferenceWindows reference(shape);
    u64 now = 1'000'000;
    std::array<u64, 4> verdicts = {};
    const auto stream = damaged_stream(random, shape, 1000);
    for (const i64 n : stream) {
      now += random() % 3;
      const Placing want = reference.place(n, now);
      ASSERT_EQ(w.place((shape.first_sequence + static_cast<u64>(n)) & kSequenceMask, now), want)
          << "round " << round << ", packet " << n;
      ++verdicts[static_cast<u32>(want)];
      if (want == Placing::placed) {
        ASSERT_EQ(w.last.window * shape.packets + w.last.slot, static_cast<u64>(n));
      }
      if (random() % 16 == 0) {
        w.tracker.expire(now, w.closer());
        reference.expire(now);
      }
      ASSERT_EQ(w.closed.size(), reference.closed.size()) << "round " << round << ", packet " << n;
    }
    const u64 total = random() % 2 == 0 ? 0 : 1500;
    w.tracker.finish(w.closer(), total);
    reference.finish(total);
    ASSERT_EQ(w.closed, reference.closed) << "round " << round;

    const WindowCounts& c = w.tracker.counts();
    EXPECT_EQ(c.placed, verdicts[0]);
    EXPECT_EQ(c.duplicate, verdicts[1]);
    EXPECT_EQ(c.late, verdicts[2]);
    EXPECT_EQ(c.misplaced, verdicts[3]);
    EXPECT_EQ(c.placed + c.duplicate + c.late + c.misplaced, stream.size());
    EXPECT_EQ(c.full + c.pushed_out + c.timed_out + c.at_end, c.windows);
    u64 arrived = 0, missing = 0;
    for (std::size_t i = 0; i < w.closed.size(); ++i) {
      ASSERT_EQ(w.closed[i].index, i) << "in order, each once";
      arrived += w.closed[i].arrived.size();
      missing += w.closed[i].packets - w.closed[i].arrived.size();
    }
    EXPECT_EQ(arrived, c.placed);
    EXPECT_EQ(missing, c.missing);
  }
}

}  // namespace
}  // namespace doorbell::net
