// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Any sequences at any times: the tracker decides as the plain reference does, closes windows in order and
// each once, and its counts add up.

#include "fuzz/fuzz.hpp"
#include "net/assembly/window.hpp"
#include "net/window_reference.hpp"

using namespace doorbell;
using namespace doorbell::net;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  FuzzedDataProvider in(data, size);
  WindowShape shape;
  shape.packets = in.ConsumeIntegralInRange<u32>(1, 200);
  shape.open = in.ConsumeIntegralInRange<u32>(1, 8);
  shape.timeout_ns = in.ConsumeIntegralInRange<u64>(0, 1000);
  shape.first_sequence = in.ConsumeIntegral<u64>() & kSequenceMask;
  WindowTracker tracker(shape);
  net::test::ReferenceWindows reference(shape);
  u64 closed = 0;
  const auto close = [&](const ClosedWindow& c) {
    require(c.index == closed++ && c.ring == c.index % shape.open && c.arrived <= c.packets);
    require(c.first_sequence == ((shape.first_sequence + c.index * shape.packets) & kSequenceMask));
    u32 set = 0;
    for (u32 i = 0; i < shape.packets; ++i) set += c.bits[i / 64] >> (i % 64) & 1;
    require(set == c.arrived);
  };
  u64 now = in.ConsumeIntegral<u32>();
  i64 packet = 0;
  constexpr u64 kClosings = 20'000;  // the reference is slow, and jumps close up to a million windows each
  for (u32 i = 0; i < 2000 && in.remaining_bytes() > 0 && closed < kClosings; ++i) {
    now += in.ConsumeIntegral<u8>();
    switch (in.ConsumeIntegralInRange<u32>(0, 7)) {
      case 0:
        tracker.expire(now, close);
        reference.expire(now);
        break;
      case 1:
        packet += in.ConsumeIntegralInRange<i64>(-100'000, 100'000);
        break;
      case 2:  // so far that it must be refused
        packet += (i64{1} << 21) * shape.packets * (in.ConsumeBool() ? 1 : -1);
        break;
      default:
        packet += in.ConsumeIntegralInRange<i64>(-20, 20);
    }
    // Half of the circle of sequences is behind the oldest window, half of it ahead.
    if (packet > i64{1} << 45 || packet < -(i64{1} << 45)) packet = 0;
    const Placing want = reference.place(packet, now);
    const Placement p =
        tracker.place((shape.first_sequence + static_cast<u64>(packet)) & kSequenceMask, now, close);
    tracker.close_full(close);
    require(p.what == want);
    require(want != Placing::placed || p.window * shape.packets + p.slot == static_cast<u64>(packet));
    require(closed == reference.closed.size());
    if (want == Placing::misplaced) packet = static_cast<i64>(tracker.oldest() * shape.packets);
  }
  tracker.finish(close);
  reference.finish(0);
  require(closed == reference.closed.size());
  const WindowCounts& c = tracker.counts();
  require(c.full + c.pushed_out + c.timed_out + c.at_end == c.windows && c.windows == closed);
  return 0;
}
