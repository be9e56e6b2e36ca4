// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Command and event queues as state machines, with one lane and with warps whose lanes are threads.

#include <doorbell/cxi/command_queue.hpp>
#include <doorbell/cxi/commands.hpp>
#include <doorbell/cxi/event_queue.hpp>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "emulated_warp.hpp"

namespace doorbell::cxi {
namespace {

constexpr OneLane lane;

/// A ring with a device that has no opinion: it parses commands by their headers, from slot 4 on.
struct Ring {
  explicit Ring(u32 n, bool triggered = false)
      : parts(u64{n} * kSlotParts), page(kLaunchBytes / 8), slots(n) {
    std::memset(parts.data(), 0xee, parts.size() * sizeof(Word16));
    state.memory.ring = parts.data();
    state.memory.launch = reinterpret_cast<u8*>(page.data());
    state.memory.slots = slots;
    state.memory.triggered = triggered;
    publish();
  }
  void publish() {
    CommandQueueStatus s;
    s.rd_ptr = read;
    s.return_code = ReturnCode::ok;
    store64_release(reinterpret_cast<u64*>(parts.data()), pack(s).w[0]);
  }
  [[nodiscard]] const u64* at(u32 unit) const {
    return reinterpret_cast<const u64*>(parts.data() + u64{unit} * 2);
  }
  /// Takes everything up to the write pointer. The request_len of each DMA command, in order.
  std::vector<u32> consume() {
    std::vector<u32> out;
    const u32 write = static_cast<u32>(page[0] & 0xffff);
    u32 unit = 2 * read;
    while (unit / 2 != write) {
      const CommandHeader h = header_of(at(unit)[0]);
      EXPECT_EQ(unit % h.units(), 0u) << "a command that is not aligned to its size";
      if (h.opcode != 0) out.push_back(static_cast<u32>(at(unit)[3]));
      unit += h.units();
      EXPECT_LE(unit, 2 * slots) << "a command across the end";
      if (unit >= 2 * slots) unit = 2 * kStatusSlots;
    }
    read = write;
    publish();
    return out;
  }
  std::vector<Word16> parts;
  std::vector<u64> page;
  u32 slots;
  u32 read = kStatusSlots;
  CommandQueueState state;
};

NomatchDma numbered(u32 n) {
  NomatchDma put;
  put.request_len = n;
  put.local_addr = u64{n} << 20;
  return put;
}
FullDma numbered_full(u32 n) {
  FullDma put;
  put.request_len = n;
  put.user_ptr = n;
  return put;
}

struct Step {
  enum class Kind { puts, one, full, idc, ring, consume } kind;
  u32 n = 0;
};

std::vector<Step> random_steps(u64 seed, u32 count) {
  std::mt19937_64 random(seed);
  std::vector<Step> steps;
  for (u32 i = 0; i < count; ++i) {
    const auto kind = static_cast<Step::Kind>(random() % 6);
    steps.push_back({kind, kind == Step::Kind::idc ? static_cast<u32>(random() % 225)
                                                   : 1 + static_cast<u32>(random() % 40)});
  }
  return steps;
}

/// Runs the steps on a Ring. What the device read, and what is in the ring at the end.
struct Outcome {
  std::vector<u32> sent, seen;
  std::vector<Word16> ring;
  CommandQueueState state;
};

template <class Warp>
void run_steps(const Warp& warp, const std::vector<Step>& steps, Ring& ring, Outcome& o,
               const std::vector<u8>& payload) {
  CommandQueue<Warp> queue(ring.state);
  u32 serial = 1;
  const bool one = warp.lane() == 0;
  for (const Step& s : steps) {
    switch (s.kind) {
      case Step::Kind::puts: {
        const u32 room = queue.room(warp, s.n);
        const u32 n = s.n < room ? s.n : room;
        queue.post_puts(warp, n, [&](u32 i) { return numbered(serial + i); });
        for (u32 i = 0; one && i < n; ++i) o.sent.push_back(serial + i);
        serial += n;
        break;
      }
      case Step::Kind::one:
        if (queue.post(warp, numbered(serial)) && one) o.sent.push_back(serial);
        ++serial;
        break;
      case Step::Kind::full:
        if (queue.post(warp, numbered_full(serial)) && one) o.sent.push_back(serial);
        ++serial;
        break;
      case Step::Kind::idc: {
        IdcPut put;
        put.bytes = s.n;
        put.payload = payload.data();
        const bool posted = queue.post(warp, put);
        // The word that Ring::consume() looks at lies in the payload.
        u32 word = 0;
        if (s.n > 8) std::memcpy(&word, payload.data() + 8, s.n - 8 < 4 ? s.n - 8 : 4);
        if (posted && one) o.sent.push_back(word);
        break;
      }
      case Step::Kind::ring:
        (void)queue.ring(warp);
        break;
      case Step::Kind::consume:
        (void)queue.ring(warp);
        warp.sync();
        if (one && ring.page[0] != 0) {
          const auto seen = ring.consume();
          o.seen.insert(o.seen.end(), seen.begin(), seen.end());
        }
        warp.sync();
        break;
    }
  }
  warp.sync();
  if (one) {
    o.state = queue.state();
    o.ring = ring.parts;
  }
}

template <u32 N>
Outcome outcome(const std::vector<Step>& steps, u32 slots) {
  Ring ring(slots);
  Outcome o;
  std::vector<u8> payload(256);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<u8>(i + 1);
  if constexpr (N == 1) run_steps(lane, steps, ring, o, payload);
  else run_warp<N>([&](const auto& warp) { run_steps(warp, steps, ring, o, payload); });
  return o;
}

TEST(CxiCommandQueue, EveryCommandArrivesOnceInOrderWhateverTheWarp) {
  for (const u32 slots : {16u, 64u}) {
    for (u64 seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", " << slots << " slots");
      std::vector<Step> steps = random_steps(seed, seed == 1 ? 2000 : 120);
      steps.push_back({Step::Kind::consume});
      const Outcome one = outcome<1>(steps, slots);
      EXPECT_EQ(one.seen, one.sent);
      EXPECT_GT(one.sent.size(), 50u);
      EXPECT_EQ(one.state.bad_status, 0u);
    }
    const std::vector<Step> few = random_steps(11, 40);
    const Outcome same = outcome<1>(few, slots);
    EXPECT_GT(same.sent.size(), 20u);
    for (const Outcome& many : {outcome<8>(few, slots), outcome<32>(few, slots)}) {
      EXPECT_EQ(many.sent, same.sent);
      EXPECT_EQ(many.state.wp32, same.state.wp32);
      EXPECT_EQ(many.state.rung32, same.state.rung32);
      EXPECT_EQ(std::memcmp(many.ring.data(), same.ring.data(), same.ring.size() * sizeof(Word16)), 0);
    }
  }
}

TEST(CxiCommandQueue, OneSlotStaysFreeAndTheLastNoopFits) {
  Ring ring(64);
  CommandQueue<OneLane> queue(ring.state);
  u32 posted = 0;
  while (queue.post(lane, numbered(posted + 1))) ++posted;
  EXPECT_EQ(posted, 2u * (64 - kStatusSlots - 1));
  EXPECT_EQ(queue.room(lane), 0u);
  EXPECT_EQ(queue.ring(lane), 1u);
  EXPECT_EQ(queue.ring(lane), 0u) << "nothing is pending";
  EXPECT_EQ(ring.consume().size(), posted);
  EXPECT_EQ(queue.room(lane), 2u * (64 - kStatusSlots - 1));

  // An odd number, up to the last unit but one: the NOOP of ring() must fit, too.
  for (u32 i = 0; i + 1 < posted; ++i) ASSERT_TRUE(queue.post(lane, numbered(i + 1)));
  EXPECT_EQ(queue.room(lane), 1u);
  EXPECT_EQ(queue.ring(lane), 1u);
  EXPECT_EQ(queue.room(lane), 0u);
  EXPECT_EQ(ring.consume().size(), posted - 1);
}

TEST(CxiCommandQueue, PutsOfABatchHaveNoGaps) {
  for (const u32 n : {1u, 2u, 7u, 64u, 100u}) {
    Ring ring(64);
    CommandQueue<OneLane> queue(ring.state);
    ASSERT_TRUE(queue.post(lane, numbered(1000)));
    queue.post_puts(lane, n, [&](u32 i) { return numbered(i + 1); });
    EXPECT_EQ(queue.state().wp32, 9 + n);
    EXPECT_EQ(queue.ring(lane), 1u);
    EXPECT_EQ(queue.state().wp32, 9 + n + (n + 1) % 2);
    EXPECT_EQ(ring.page[0], (9 + n + 1) / 2);
    const auto seen = ring.consume();
    ASSERT_EQ(seen.size(), n + 1);
    for (u32 i = 0; i < n; ++i) EXPECT_EQ(seen[i + 1], i + 1);
  }
}

TEST(CxiCommandQueue, TriggeredQueuesPadWithCounterNoops) {
  Ring ring(64, true);
  CommandQueue<OneLane> queue(ring.state);
  ASSERT_TRUE(queue.post(lane, CounterCommand::trig_event(5, 100, 7)));
  TrigDma put;
  ASSERT_TRUE(queue.post(lane, put));
  EXPECT_EQ(queue.state().wp32, 16u);
  EXPECT_EQ(ring.at(10)[0], 0x06u);
  EXPECT_EQ(ring.at(11)[0], 0xeeeeeeeeeeeeeeeeu) << "one NOOP of 64 bytes";
  EXPECT_EQ(ring.at(12)[0] & 0xff, 0x5au);
  EXPECT_EQ(queue.ring(lane), 1u);
  EXPECT_EQ(ring.page[0], 8u);
}

TEST(CxiCommandQueue, AStatusThatLiesIsCountedAndNotBelieved) {
  Ring ring(64);
  CommandQueue<OneLane> queue(ring.state);
  for (u32 i = 0; i < 10; ++i) ASSERT_TRUE(queue.post(lane, numbered_full(i + 1)));
  (void)queue.ring(lane);
  for (const u32 slot : {0u, 3u, 15u, 63u, 64u, 65535u}) {
    ring.read = slot;
    ring.publish();
    (void)queue.status(lane);
    EXPECT_EQ(queue.state().rp32, 8u) << slot;
  }
  EXPECT_EQ(queue.bad_status(), 6u);
  ring.read = 14;
  ring.publish();
  (void)queue.status(lane);
  EXPECT_EQ(queue.bad_status(), 6u);
  EXPECT_EQ(queue.state().rp32, 28u);
}

// --- low-latency windows ----------------------------------------------------------------------------------

constexpr u32 k64 = 1024, kAligned = 2048, kUnaligned = 3072;

/// A queue that stands at `slot`, the device too.
struct Standing {
  explicit Standing(u32 slot) : ring(64), queue(state(ring, slot)) {}
  static CommandQueueState state(Ring& ring, u32 slot) {
    ring.read = slot;
    ring.publish();
    ring.state.wp32 = ring.state.rung32 = ring.state.rp32 = 2 * slot;
    return ring.state;
  }
  [[nodiscard]] u64 window(u32 base, u32 slot) const { return ring.page[(base + slot % 16 * 64) / 8]; }
  [[nodiscard]] u32 touched() const {
    u32 n = 0;
    for (std::size_t i = 1; i < ring.page.size(); ++i) n += ring.page[i] != 0 ? 1u : 0u;
    return n;
  }
  Ring ring;
  CommandQueue<OneLane> queue;
};

TEST(CxiLowLatency, ABusyDeviceGetsTheDoorbell) {
  Standing s(8);
  ASSERT_TRUE(s.queue.post(lane, numbered(1)));
  EXPECT_EQ(s.queue.ring(lane), 1u);
  ASSERT_TRUE(s.queue.post(lane, numbered(2)));
  EXPECT_EQ(s.queue.ring_low_latency(lane), 1u);
  EXPECT_EQ(s.touched(), 0u);
  EXPECT_EQ(s.ring.page[0], 10u);
  EXPECT_EQ(s.queue.ring_low_latency(lane), 0u) << "nothing is pending";
}

TEST(CxiLowLatency, EverySlotHasItsPlace) {
  for (u32 slot = 4; slot < 64; ++slot) {
    Standing one(slot);
    ASSERT_TRUE(one.queue.post(lane, numbered_full(slot)));
    EXPECT_EQ(one.queue.ring_low_latency(lane), 1u);
    EXPECT_EQ(one.window(k64, slot), encode(numbered_full(slot)).w[0]);
    EXPECT_EQ(one.ring.page[0], 0u) << "a window needs no doorbell";
    EXPECT_EQ(one.queue.state().rung32, slot == 63 ? 8u : 2 * slot + 2);

    Standing two(slot);
    ASSERT_TRUE(two.queue.post(lane, numbered_full(1)));
    ASSERT_TRUE(two.queue.post(lane, numbered_full(2)));
    const bool even = slot % 2 == 0;
    EXPECT_EQ(two.queue.ring_low_latency(lane), even ? 1u : 2u) << slot;
    EXPECT_NE(two.window(even ? kAligned : k64, slot), 0u);
    EXPECT_EQ(two.ring.page[0] != 0, !even);
  }
}

TEST(CxiLowLatency, PaddingBeforeALargeCommandIsStepedOver) {
  std::vector<u8> payload(112, 0x5a);
  IdcPut large;
  large.bytes = 112;
  large.payload = payload.data();
  for (u32 slot = 5; slot < 64; slot += 2) {
    SCOPED_TRACE(slot);
    Standing s(slot);
    ASSERT_TRUE(s.queue.post(lane, large));
    const u32 begin = slot == 63 ? 4 : slot + 1;
    EXPECT_EQ(s.queue.ring_low_latency(lane), 1u);
    EXPECT_EQ(s.window(kUnaligned, begin),
              command_part(large, 0).w[0] | u64{command_part(large, 0).w[1]} << 32);
    EXPECT_EQ(s.ring.page[0], 0u);
    EXPECT_EQ(s.queue.state().rung32, begin == 62 ? 8 : 2 * begin + 4);
  }
  payload.resize(224);
  large.bytes = 224;
  large.payload = payload.data();
  Standing s(7);
  ASSERT_TRUE(s.queue.post(lane, large));
  EXPECT_EQ(s.queue.ring_low_latency(lane), 1u);
  EXPECT_EQ(s.touched(), 0u) << "256 bytes do not fit a window";
  EXPECT_EQ(s.ring.page[0], 12u);
}

TEST(CxiLowLatency, AWarpWritesTheSameWindow) {
  for (const u32 slot : {4u, 5u, 62u, 63u}) {
    Standing one(slot), many(slot);
    for (u32 i = 0; i < 5; ++i) ASSERT_TRUE(one.queue.post(lane, numbered(i + 1)));
    (void)one.queue.ring_low_latency(lane);
    run_warp<8>([&](const auto& warp) {
      CommandQueue<std::remove_cvref_t<decltype(warp)>> queue(many.ring.state);
      queue.post_puts(warp, 5, [](u32 i) { return numbered(i + 1); });
      (void)queue.ring_low_latency(warp);
    });
    EXPECT_EQ(many.ring.page, one.ring.page) << slot;
  }
}

// --- event queues
// -------------------------------------------------------------------------------------------

struct Events {
  explicit Events(u32 bytes) : words(bytes / 8) {
    state.memory = {reinterpret_cast<u8*>(words.data()), &csr, bytes, 1};
  }
  template <class E>
  void put(u32 offset, EventType type, u64 data) {
    E e;
    e.type = type;
    auto encoded = encode_event(e);
    encoded.w[0] = data;
    std::memcpy(words.data() + offset / 8, encoded.w, sizeof encoded.w);
  }
  std::vector<u64> words;
  u64 csr = 0;
  EventQueueState state;
};

TEST(CxiEventQueue, HalfAnEventIsNoEvent) {
  Events e(4096);
  EventQueue<OneLane> queue(e.state);
  e.put<TargetEvent>(64, EventType::put, 7);
  const u64 second = e.words[9], last = e.words[11];
  e.words[11] = 0;
  EXPECT_EQ(queue.poll(lane).bytes, 0u) << "no return code yet";
  e.words[9] = 0;
  e.words[11] = last;
  EXPECT_EQ(queue.poll(lane).bytes, 0u) << "no size yet";
  EXPECT_EQ(queue.state().read, 64u);
  e.words[9] = second;
  const auto p = queue.poll(lane);
  EXPECT_EQ(p.bytes, 32u);
  EXPECT_EQ(p.type, EventType::put);
  EXPECT_EQ(p.words[0], 7u);
  EXPECT_EQ(queue.unacked(), 32u);
  EXPECT_EQ(queue.ack(lane), 1u);
  EXPECT_EQ(e.csr, 1u);
  EXPECT_EQ(queue.ack(lane), 0u);
  EXPECT_EQ(queue.poll(lane).bytes, 0u);
}

TEST(CxiEventQueue, LapsWithEventsOfAllSizesAndNullsBetween) {
  constexpr u64 kEvents = 50;  // a lap is 15
  const auto lap = [](const auto& warp, Events& e, std::vector<u64>& seen) {
    EventQueue<std::remove_cvref_t<decltype(warp)>> queue(e.state);
    u32 at = kEventQueueHead;
    for (u64 n = 1; n <= kEvents; ++n) {
      if (warp.lane() == 0) {
        // A block of 64 bytes: an event, and NULL events behind it.
        if (n % 3 == 0) e.put<TargetLongEvent>(at, EventType::put, n);
        else if (n % 3 == 1) {
          e.put<TargetEvent>(at, EventType::put, n);
          e.put<NullEvent<4>>(at + 32, EventType::null_event, 0);
        } else {
          e.put<InitiatorEvent>(at, EventType::ack, n);
          e.put<NullEvent<2>>(at + 16, EventType::null_event, 0);
          e.put<NullEvent<4>>(at + 32, EventType::null_event, 0);
        }
      }
      at = at + 64 == 1024 ? kEventQueueHead : at + 64;
      warp.sync();
      const auto p = queue.poll(warp);
      if (warp.lane() == 0 && p.bytes != 0) seen.push_back(p.words[0]);
      EXPECT_EQ(p.bytes, n % 3 == 0 ? 64u : n % 3 == 1 ? 32u : 16u);
      EXPECT_EQ(queue.poll(warp).bytes, 0u);
      if (n % 5 == 0) (void)queue.ack(warp);
      warp.sync();
    }
  };
  std::vector<u64> expected;
  for (u64 n = 1; n <= kEvents; ++n) expected.push_back(n);
  Events one(1024), many(1024);
  std::vector<u64> seen, seen_by_many;
  lap(lane, one, seen);
  run_warp<8>([&](const auto& warp) { lap(warp, many, seen_by_many); });
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(seen_by_many, expected);
  EXPECT_EQ(one.words, many.words);
  EXPECT_EQ(one.words, std::vector<u64>(128)) << "all consumed bytes are zero";
  EXPECT_EQ(one.csr, many.csr);
}

TEST(CxiEventQueue, DropsAreAcknowledged) {
  Events e(4096);
  EventQueue<OneLane> queue(e.state);
  EventQueueStatus s;
  s.unackd_dropped = s.drop_seq = true;
  const auto words = pack(s);
  std::memcpy(e.words.data(), words.w, sizeof words.w);
  EXPECT_TRUE(queue.status(lane).unackd_dropped);
  queue.acknowledge_drops(lane);
  EXPECT_TRUE(unpack<EventQueueCsr>(&e.csr).event_drop_seq_no);
  EXPECT_EQ(unpack<EventQueueCsr>(&e.csr).rd_ptr, 1u);
}

TEST(CxiEventQueue, AQueueFullOfNullsDoesNotHoldTheReader) {
  Events e(256);
  for (u32 at = 64; at < 256; at += 16) e.put<NullEvent<2>>(at, EventType::null_event, 0);
  EventQueue<OneLane> queue(e.state);
  EXPECT_EQ(queue.poll(lane).bytes, 0u);
}

}  // namespace
}  // namespace doorbell::cxi
