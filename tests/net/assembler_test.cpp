// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/assembly/assembler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>

#include "errors.hpp"
#include "net/assembly/gather.hpp"
#include "net/window_sink.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;
using test::WindowSink;

/// The data of packet n: no byte of it is 0, and none is that of another packet at the same place.
std::vector<u8> data_of(u64 n, u32 bytes) {
  std::vector<u8> d(bytes);
  for (u32 i = 0; i < bytes; ++i) d[i] = static_cast<u8>(1 + (n * 7 + i) % 255);
  return d;
}

AssemblerRequest small(u32 packets = 4, u32 bytes = 24, Missing missing = Missing::zero) {
  AssemblerRequest r;
  r.shape = {.packets = packets, .open = 2};
  r.data_bytes = bytes;
  r.missing = missing;
  return r;
}

Placing add(Assembler& a, u64 n, u32 bytes = 24) {
  const auto d = data_of(n, bytes);
  return a.add(n, d.data(), bytes, n);
}

/// The contents that a window must have: each packet that came, and zeros or nothing known elsewhere.
void expect_holds(const WindowSink::Seen& w, u32 slot_bytes, u32 window_packets) {
  for (u32 i = 0; i < w.packets; ++i) {
    const std::vector<u8> slot(w.bytes.begin() + i * slot_bytes, w.bytes.begin() + (i + 1) * slot_bytes);
    if (w.arrived[i]) {
      ASSERT_EQ(slot, data_of(w.index * window_packets + i, slot_bytes))
          << "window " << w.index << " slot " << i;
    } else {
      ASSERT_EQ(slot, std::vector<u8>(slot_bytes)) << "window " << w.index << " slot " << i;
    }
  }
}

TEST(Assembler, PutsPacketsWhereTheyBelong) {
  WindowSink sink;
  Assembler a(small(), sink);
  for (const u64 n : {3, 1, 0, 2, 7, 5, 6, 4}) EXPECT_EQ(add(a, n), Placing::placed);
  ASSERT_EQ(sink.seen.size(), 2U);
  for (const auto& w : sink.seen) {
    expect_holds(w, 24, 4);
    EXPECT_TRUE(w.missing.empty());
    EXPECT_EQ(w.why, Closing::full);
    EXPECT_EQ(w.bytes.size(), 96U);
  }
}

TEST(Assembler, MissingSlotsHoldZerosAndNotWhatWasThere) {
  WindowSink sink;
  Assembler a(small(), sink);
  for (u64 n = 0; n < 24; ++n) add(a, n);  // every buffer has held a whole window
  for (const u64 n : {25, 26, 31}) add(a, n);
  a.finish();
  ASSERT_EQ(sink.seen.size(), 8U);
  EXPECT_EQ(sink.seen[6].missing, (std::vector<u32>{0, 3}));
  EXPECT_EQ(sink.seen[7].missing, (std::vector<u32>{0, 1, 2}));
  for (const auto& w : sink.seen) expect_holds(w, 24, 4);
}

TEST(Assembler, MarkLeavesMissingSlotsAlone) {
  WindowSink sink;
  Assembler a(small(4, 24, Missing::mark), sink);
  for (u64 n = 0; n < 4; ++n) add(a, n);
  const u32 buffer = sink.seen[0].buffer;
  for (const u64 n : {4, 6}) add(a, n);
  a.finish(8);
  ASSERT_EQ(sink.seen.size(), 2U);
  const auto& w = sink.seen[1];
  ASSERT_EQ(w.buffer, buffer) << "the test looks for what was there before";
  EXPECT_EQ(w.missing, (std::vector<u32>{1, 3}));
  EXPECT_EQ(std::vector<u8>(w.bytes.begin() + 24, w.bytes.begin() + 48), data_of(1, 24));
  EXPECT_EQ(std::vector<u8>(w.bytes.begin(), w.bytes.begin() + 24), data_of(4, 24));
  EXPECT_EQ(std::vector<u8>(w.bytes.begin() + 72, w.bytes.end()), data_of(3, 24));
}

TEST(Assembler, ADuplicateOverwritesNothing) {
  WindowSink sink;
  Assembler a(small(2), sink);
  add(a, 0);
  const std::vector<u8> other(24, 0xee);
  EXPECT_EQ(a.add(0, other.data(), 24, 0), Placing::duplicate);
  add(a, 1);
  EXPECT_EQ(a.add(1, other.data(), 24, 0), Placing::late);
  ASSERT_EQ(sink.seen.size(), 1U);
  expect_holds(sink.seen[0], 24, 2);
}

TEST(Assembler, WindowsWithoutAnyPacketAreZeroOrEmpty) {
  WindowSink sink;
  Assembler a(small(), sink);
  for (u64 n = 0; n < 16; ++n) add(a, n);
  add(a, 4 * 2000);
  ASSERT_EQ(sink.seen.size(), 1999U);
  for (u32 i = 4; i < 1999; ++i) {
    ASSERT_EQ(sink.seen[i].index, i);
    ASSERT_EQ(sink.seen[i].missing, (std::vector<u32>{0, 1, 2, 3}));
    expect_holds(sink.seen[i], 24, 4);
  }
  for (u64 n = 4 * 2000; n < 4 * 2004; ++n) add(a, n);  // what was zero is used again
  a.finish();
  for (const auto& w : sink.seen) expect_holds(w, 24, 4);
}

TEST(Assembler, AnotherLengthTouchesNothing) {
  WindowSink sink;
  Assembler a(small(2), sink);
  const std::vector<u8> data(48, 1);
  EXPECT_EQ(a.add(0, data.data(), 23, 0), Placing::wrong_length);
  EXPECT_EQ(a.add(0, data.data(), 48, 0), Placing::wrong_length);
  EXPECT_EQ(a.wrong_length(), 2U);
  EXPECT_EQ(a.counts().placed, 0U);
  EXPECT_EQ(add(a, 0), Placing::placed);
}

TEST(Assembler, TimeoutsDeliver) {
  WindowSink sink;
  auto r = small();
  r.shape.timeout_ns = 50;
  Assembler a(r, sink);
  add(a, 1);
  EXPECT_EQ(a.next_timeout_ns(), 51U);
  a.poll(50);
  EXPECT_TRUE(sink.seen.empty());
  a.poll(51);
  ASSERT_EQ(sink.seen.size(), 1U);
  EXPECT_EQ(sink.seen[0].why, Closing::timeout);
  EXPECT_EQ(sink.seen[0].missing, (std::vector<u32>{0, 2, 3}));
}

TEST(Assembler, ABufferIsUsedAgainOnlyWhenItCameBack) {
  WindowSink sink(2);
  Assembler a(small(), sink);
  for (u64 n = 0; n < 400; ++n)
    if (n % 7 != 3) add(a, n);
  a.finish(400);
  ASSERT_EQ(sink.seen.size(), 100U);
  EXPECT_TRUE(sink.unchanged) << "a window was written to while the consumer had it";
  EXPECT_EQ(sink.waits, 0U) << "there are buffers for two windows in flight";
  std::set<u32> used;
  for (const auto& w : sink.seen) {
    used.insert(w.buffer);
    expect_holds(w, 24, 4);
  }
  EXPECT_LE(used.size(), 4U);
}

TEST(Assembler, WaitsForAConsumerThatKeepsTooMuch) {
  WindowSink sink(100);
  Assembler a(small(1), sink);
  for (u64 n = 0; n < 50; ++n) ASSERT_EQ(add(a, n), Placing::placed);
  EXPECT_GT(sink.waits, 0U);
  EXPECT_TRUE(sink.unchanged);
  sink.gives_when_asked = false;
  auto r = small(1);
  r.wait_ns = 1'000'000;
  WindowSink stuck(100);
  stuck.gives_when_asked = false;
  Assembler b(r, stuck);
  expect_says(error_of(
                  [&] {
                    for (u64 n = 0; n < 50; ++n) add(b, n);
                  },
                  ExitCode::data),
              "4 windows: what takes them has given none back");
}

TEST(Assembler, GivingBackTwiceIsAnError) {
  WindowSink sink(1);
  Assembler a(small(1), sink);
  add(a, 0);
  const Window w = sink.kept.front();
  w.give_back();
  expect_says(error_of([&] { w.give_back(); }, ExitCode::data), "given back twice");
  sink.kept.clear();
}

TEST(Assembler, Converts) {
  WindowSink sink;
  auto r = small(2, 4);
  r.convert = Conversion{Integer::int16, Float::fp32, true};
  Assembler a(r, sink);
  EXPECT_EQ(a.slot_bytes(), 8U);
  const std::array<u8, 4> first = {0x01, 0x00, 0xff, 0xff};
  const std::array<u8, 4> second = {0x80, 0x00, 0x00, 0x07};
  a.add(1, second.data(), 4, 0);
  a.add(0, first.data(), 4, 0);
  ASSERT_EQ(sink.seen.size(), 1U);
  std::array<float, 4> values;
  ASSERT_EQ(sink.seen[0].bytes.size(), sizeof values);
  std::memcpy(values.data(), sink.seen[0].bytes.data(), sizeof values);
  EXPECT_EQ(values, (std::array<float, 4>{256, -1, -32768, 7}));
}

TEST(Assembler, RandomStreamsArriveWholeOrZero) {
  for (u32 round = 0; round < 40; ++round) {
    std::mt19937_64 random(round);
    const u32 packets = 1 + static_cast<u32>(random() % 70);
    const u32 bytes = 1 + static_cast<u32>(random() % 40);
    auto r = small(packets, bytes);
    r.shape.open = 1 + static_cast<u32>(random() % 4);
    r.in_flight = 1 + static_cast<u32>(random() % 3);
    WindowSink sink(static_cast<u32>(random() % (r.in_flight + 1)));
    Assembler a(r, sink);
    std::vector<std::pair<u64, u64>> order;
    for (u64 n = 0; n < 2000; ++n)
      if (random() % 10 != 0) order.emplace_back(n + random() % (1 + u64{2} * packets), n);
    std::ranges::sort(order);
    for (const auto& [when, n] : order) {
      add(a, n, bytes);
      if (random() % 64 == 0) a.poll(n);
    }
    a.finish(2000);
    u64 arrived = 0, next = 0;
    for (const auto& w : sink.seen) {
      ASSERT_EQ(w.index, next++);
      expect_holds(w, bytes, packets);
      arrived += w.packets - w.missing.size();
      for (const u32 slot : w.missing) ASSERT_FALSE(w.arrived[slot]);
    }
    EXPECT_EQ(next, (2000 + packets - 1) / packets);
    EXPECT_EQ(arrived, a.counts().placed);
    EXPECT_EQ(a.counts().placed + a.counts().late, order.size());
    EXPECT_TRUE(sink.unchanged);
  }
}

// --- gather -----------------------------------------------------------------------------------------

TEST(Gather, JoinsMessagesInTheOrderOfArrival) {
  WindowSink sink(1);
  Gather g({.data_bytes = 24, .window_bytes = 100, .in_flight = 1}, sink);
  EXPECT_EQ(g.window_bytes(), 96U) << "the nearest whole number of messages";
  EXPECT_FALSE(g.passes_through());
  for (u64 n = 0; n < 18; ++n) {
    const auto d = data_of(n, 24);
    EXPECT_EQ(g.add(n, d.data(), 24, n), Placing::placed);
  }
  g.finish();
  ASSERT_EQ(sink.seen.size(), 5U);
  for (const auto& w : sink.seen) expect_holds(w, 24, 4);
  EXPECT_EQ(sink.seen[4].packets, 2U);
  EXPECT_EQ(sink.seen[4].why, Closing::end);
  EXPECT_EQ(sink.seen[3].first_packet, 12U);
  EXPECT_TRUE(sink.unchanged);
  EXPECT_EQ(g.counts().full, 4U);
  const std::vector<u8> other(25);
  EXPECT_EQ(g.add(18, other.data(), 25, 0), Placing::wrong_length);
}

TEST(Gather, PassesALargeMessageThroughWithoutACopy) {
  WindowSink sink(3);
  Gather g({.data_bytes = 1000, .window_bytes = 1000}, sink);
  EXPECT_TRUE(g.passes_through());
  const auto d = data_of(5, 1000);
  g.add(5, d.data(), 1000, 1);
  ASSERT_EQ(sink.seen.size(), 1U);
  EXPECT_EQ(sink.seen[0].at, d.data());
  EXPECT_EQ(g.borrowed(), 1U);
  g.finish();
  EXPECT_EQ(g.borrowed(), 0U);
}

TEST(Gather, CutsAMessageIntoWindows) {
  WindowSink sink(8);
  Gather g({.data_bytes = 1000, .window_bytes = 300}, sink);
  EXPECT_EQ(g.window_bytes(), 300U);
  const auto d = data_of(0, 1000);
  g.add(0, d.data(), 1000, 1);
  ASSERT_EQ(sink.seen.size(), 3U);
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_EQ(sink.seen[i].at, d.data() + i * 300);
    EXPECT_EQ(sink.seen[i].index, i);
  }
  EXPECT_EQ(g.borrowed(), 3U);
  g.finish();
  expect_says(error_of([&] { g.give_back(Window{}); }, ExitCode::data), "given back twice");
}

TEST(Gather, RefusesWhatMakesNoWindow) {
  WindowSink sink;
  expect_says(error_of([&] { Gather g({.data_bytes = 0, .window_bytes = 1}, sink); }), "0 bytes");
  expect_says(error_of([&] { Gather g({.data_bytes = 1, .window_bytes = 0}, sink); }), "0 bytes");
  expect_says(error_of([&] { Gather g({.data_bytes = 1, .window_bytes = u64{1} << 30}, sink); }), "at most");
}

}  // namespace
}  // namespace doorbell::net
