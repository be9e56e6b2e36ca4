// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of the software Cassini alone: queues, launch pages, event queues, counters, triggers, time.

#include <algorithm>
#include <array>
#include <atomic>
#include <random>

#include "cxi/model/cassini.hpp"
#include "cxi/model/launch.hpp"
#include "model/served_parts.hpp"
#include "rig.hpp"

namespace doorbell::cxi {
namespace {

// --- command queues --------------------------------------------------------------------------------------

TEST(CxiQueues, ManyLapsWithCommandsOfAllSizes) {
  Rig rig({.slots = 64});
  CState state;
  state.write_lac = rig.near.md->lac();
  state.flags = rig.put(0).flags;
  state.index_ext = rig.dfa().index_ext;
  state.ct = rig.ct.index();
  rig.tx.post(state);
  std::mt19937_64 random(1);
  u64 done = 0;
  for (u32 n = 0; n < 3000; ++n) {
    const u64 at = random() % 4096 * 8;
    const u32 kind = static_cast<u32>(random() % 4);
    if (kind == 0) {
      rig.tx.post(rig.put(100, at, at));
    } else if (kind == 1) {
      FullDma full;
      rig.set(full, 100, at, at);
      full.flags.event_ct_ack = true;
      rig.tx.post(full);
    } else {
      IdcPut idc;
      idc.dfa = rig.dfa().value;
      idc.remote_offset = at;
      idc.bytes = static_cast<u32>(random() % (idc_limit(false) + 1));
      idc.payload = rig.near.data() + at;
      rig.tx.post(idc);
    }
    ++done;
    if (random() % 3 == 0) rig.tx.ring();
    if (n % 500 == 499) {
      rig.tx.ring();
      rig.ct.expect(done);
    }
  }
  rig.tx.ring();
  rig.ct.expect(done);
  EXPECT_EQ(rig.tx.queue->bad_status(), 0u);
  EXPECT_EQ(name(rig.tx.status().return_code), "OK");
  rig.tx_events.expect_none();
}

TEST(CxiQueues, WritePointersOfTwoFourAndEightBytes) {
  Rig rig;
  u32 slot = kStatusSlots;
  const auto put = [&] {
    const NomatchDma c = rig.put(64);
    std::memcpy(rig.tx.memory.ring + u64{slot} * kSlotParts, encode(c).w, 32);
    std::memset(rig.tx.memory.ring + u64{slot} * kSlotParts + 2, 0, 32);
    return ++slot;
  };
  u8* const page = rig.tx.memory.launch;
  __atomic_store_n(reinterpret_cast<u16*>(page), static_cast<u16>(put()), __ATOMIC_RELEASE);
  rig.ct.expect(1);
  __atomic_store_n(reinterpret_cast<u32*>(page), put() | 0xabcd0000u, __ATOMIC_RELEASE);
  rig.ct.expect(2);
  __atomic_store_n(reinterpret_cast<u64*>(page), put() | 0x1234567800000000u, __ATOMIC_RELEASE);
  rig.ct.expect(3);
  for (const u64 bad : {u64{0}, u64{3}, u64{rig.tx.memory.slots}, u64{65535}}) {
    const u64 before = rig.counter("invalid_doorbell_values");
    __atomic_store_n(reinterpret_cast<u64*>(page), bad, __ATOMIC_RELEASE);
    EXPECT_TRUE(eventually([&] { return rig.counter("invalid_doorbell_values") == before + 1; })) << bad;
  }
  __atomic_store_n(reinterpret_cast<u64*>(page), put(), __ATOMIC_RELEASE);
  rig.ct.expect(4);
  // The same value again says nothing new.
  __atomic_store_n(reinterpret_cast<u64*>(page), slot, __ATOMIC_RELEASE);
  let_rounds_pass(*rig.endpoint);
  rig.ct.expect(4);
}

TEST(CxiQueues, TheLargestQueue) {
  Rig rig({.slots = kMaxSlots});
  ASSERT_EQ(rig.tx.memory.slots, kMaxSlots);
  u64 done = 0;
  for (u32 lap = 0; lap < 3; ++lap) {
    const u32 n = rig.tx.queue->room(lane, 2 * kMaxSlots);
    EXPECT_GE(n, 2 * (kMaxSlots - kStatusSlots - 1) - 1);
    rig.tx.queue->post_puts(lane, n, [&](u32) { return rig.put(8); });
    rig.tx.ring();
    done += n;
    rig.ct.expect(done);
  }
}

TEST(CxiQueues, ThousandsOfQueuesInTurn) {
  Rig rig;
  for (u32 n = 1; n <= 300; ++n) {
    Commands q(*rig.endpoint, CommandQueueKind::transmit, 64, nullptr);
    q.submit(rig.put(32));
    rig.ct.expect(n);
  }
}

// --- low-latency windows ----------------------------------------------------------------------------------

TEST(CxiWindows, CommandsThroughWindowsAndDoorbellsArriveOnce) {
  Rig rig({.slots = 64});
  std::mt19937_64 random(2);
  std::vector<u8> payload(112, 7);
  CState state;
  state.write_lac = rig.near.md->lac();
  state.flags = rig.put(0).flags;
  state.index_ext = rig.dfa().index_ext;
  state.ct = rig.ct.index();
  rig.tx.post(state);
  u64 done = 0;
  for (u32 n = 0; n < 2000; ++n) {
    const u32 batch = 1 + static_cast<u32>(random() % 5);
    for (u32 k = 0; k < batch; ++k) {
      const u64 at = random() % 1024 * 8;
      IdcPut idc;
      idc.dfa = rig.dfa().value;
      idc.bytes = static_cast<u32>(payload.size());
      idc.payload = payload.data();
      if (random() % 3 == 0) rig.tx.post(idc);
      else rig.tx.post(rig.put(64, at, at));
    }
    done += batch;
    (void)rig.tx.queue->ring_low_latency(lane);
    // Sometimes the device is idle at the next one, sometimes not.
    if (random() % 2 == 0) rig.ct.expect(done);
  }
  rig.ct.expect(done);
  EXPECT_GT(rig.counter("window_writes"), 500u);
  EXPECT_EQ(rig.counter("rejected_window_writes"), 0u);
  EXPECT_EQ(rig.tx.status().rejected, 0u);
  EXPECT_EQ(name(rig.tx.status().return_code), "OK");
}

TEST(CxiWindows, TheWindowItselfIsWhatIsExecuted) {
  Rig rig;
  rig.tx.post(rig.put(64));
  // Whoever looked at the ring now would find another command.
  auto* const window = reinterpret_cast<u64*>(rig.tx.memory.launch + kWindow64 + kStatusSlots * kSlotBytes);
  u64 words[kSlotWords] = {};
  std::memcpy(words, rig.tx.memory.ring + u64{kStatusSlots} * kSlotParts, sizeof words);
  std::memset(rig.tx.memory.ring + u64{kStatusSlots} * kSlotParts, 0xff, kSlotBytes);
  std::memset(words + 4, 0, 32);
  for (u32 k = 0; k < kSlotWords; ++k) store64_release(window + k, words[k]);
  rig.ct.expect(1);
  EXPECT_TRUE(rig.arrived(64));
}

TEST(CxiWindows, AWriteAtAnotherPlaceIsRejectedAndCounted) {
  Rig rig({.slow_writer_ns = 200'000'000});
  u64 words[2 * kSlotWords] = {};
  std::memcpy(words, encode(rig.put(64)).w, 32);
  u64 rejected = 0;
  for (const u32 slot : {3u, 5u, 9u}) {
    u64* const window = window_of(rig.tx.memory.launch, kWindow64, slot);
    for (u32 k = 0; k < kSlotWords; ++k) store64_release(window + k, words[k]);
    ++rejected;
    EXPECT_TRUE(eventually([&] { return rig.counter("rejected_window_writes") == rejected; })) << slot;
  }
  EXPECT_EQ(rig.tx.status().rejected, rejected);
  // The places are usable again.
  rig.tx.post(rig.put(64));
  (void)rig.tx.queue->ring_low_latency(lane);
  rig.ct.expect(1);
  EXPECT_EQ(rig.counter("window_writes"), 1u);
  EXPECT_EQ(rig.counter("rejected_window_writes"), rejected);
}

TEST(CxiWindows, ABadCommandInAWindowSaysWhereItCameFrom) {
  Rig rig;
  FullDma full;
  rig.set(full, 64, 0, 0);
  full.opcode = Opcode::atomic;
  rig.tx.post(full);
  (void)rig.tx.queue->ring_low_latency(lane);
  (void)rig.tx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::illegal_op);
  EXPECT_TRUE(eventually([&] { return rig.tx.status().fail_ll; }));
}

// --- event queues -----------------------------------------------------------------------------------------

TEST(CxiEvents, ManyLapsOfMixedSizes) {
  Rig rig({.append_flags = append_flag::op_put});
  Events small(*rig.endpoint, 4096);
  for (u32 n = 1; n <= 2000; ++n) {
    FullDma full;
    rig.set(full, 64 + n, 0, 0);
    full.eq = small.index();
    full.user_ptr = n;
    full.flags.event_success_disable = false;
    full.flags.event_send_disable = n % 3 != 0;
    rig.tx.submit(full);
    if (n % 3 == 0) {
      ASSERT_EQ(small.expect<InitiatorEvent>(EventType::send).user_ptr, n);
    }
    ASSERT_EQ(small.expect<InitiatorEvent>(EventType::ack).user_ptr, n);
    ASSERT_EQ(rig.rx_events.expect<TargetEvent>(EventType::put).length, 64 + n);
  }
  EXPECT_EQ(rig.counter("dropped_events"), 0u);
}

TEST(CxiEvents, EventsOfThreeSizesShareAQueueWithoutGaps) {
  // Command failures of 16 bytes, target events of 32 and 64: all in one queue.
  Rig rig({.bytes = 4u << 20, .enable = false});
  Events one(*rig.endpoint, 4096);
  const auto pte = rig.endpoint->create_portals_entry(*one.object, 5);
  SetState s;
  s.ptlte_index = pte->index();
  s.ptlte_state = PtlteState::enabled;
  rig.target.submit(s);
  (void)one.expect<StateChangeLongEvent>(EventType::state_change);
  Append a = rig.entry(append_flag::op_put);
  a.ptlte_index = pte->index();
  rig.target.submit(a);
  (void)one.expect<TargetLongEvent>(EventType::link);
  std::mt19937_64 random(3);
  for (u32 n = 0; n < 1000; ++n) {
    const bool large = random() % 2 == 0, acked = random() % 2 == 0;
    NomatchDma put = rig.put(large ? 1u << 20 : 64);
    put.to(rig.dfa(5));
    put.eq = one.index();
    put.flags.event_success_disable = !acked;
    rig.tx.submit(put);
    if (large) ASSERT_EQ(one.expect<TargetLongEvent>(EventType::put).mlength, 1u << 20);
    else ASSERT_EQ(one.expect<TargetEvent>(EventType::put).length, 64u);
    if (acked) (void)one.expect<InitiatorEvent>(EventType::ack);
  }
}

TEST(CxiEvents, AFullQueueDropsAndSaysSo) {
  Rig rig;
  Events small(*rig.endpoint, 4096);
  const auto put = [&](u32 n) {
    FullDma full;
    rig.set(full, 64, 0, 0);
    full.eq = small.index();
    full.user_ptr = n;
    full.flags.event_success_disable = false;
    full.flags.event_ct_ack = true;
    return full;
  };
  constexpr u32 kPuts = 300;  // of which (64 - 1 - 2) blocks hold 4 events each
  for (u32 n = 0; n < kPuts; ++n) rig.tx.submit(put(n));
  rig.ct.expect(kPuts);
  const u64 dropped = rig.counter("dropped_events");
  EXPECT_EQ(dropped, kPuts - 61 * 4);
  auto status = small.queue->status(lane);
  EXPECT_TRUE(status.valid());
  EXPECT_TRUE(status.unackd_dropped);
  EXPECT_TRUE(status.drop_seq);
  EXPECT_EQ(status.slots_free, 0u);
  EXPECT_EQ(status.slots_reserved, 2u);
  // The events that were written are all there, in order.
  for (u32 n = 0; n < kPuts - dropped; ++n) {
    const auto p = small.queue->poll(lane);
    ASSERT_EQ(p.bytes, 16u);
    ASSERT_EQ(p.words[0], n);
  }
  EXPECT_EQ(small.queue->poll(lane).bytes, 0u);
  small.queue->acknowledge_drops(lane);
  EXPECT_TRUE(eventually([&] { return !small.queue->status(lane).unackd_dropped; }));
  rig.tx.submit(put(1000));
  EXPECT_EQ(small.expect<InitiatorEvent>(EventType::ack).user_ptr, 1000u);
  EXPECT_EQ(rig.counter("dropped_events"), dropped);
}

/// The parts that an EventProducer needs of an engine whose memory it reaches.
struct ProducerParts {
  model::NoDma dma;
  static u64 wall_ns() { return doorbell::wall_ns(); }
  static void signal(int) {}
};

/// The block that an event has begun is taken, whatever room is left in it: 64 bytes that begin behind it
/// need another one.
TEST(CxiEvents, ALargeEventInTheMiddleOfABlockNeedsTheNext) {
  constexpr u32 kBytes = 4096, kBlocks = kBytes / kSlotBytes - 1 - 2;  // without the status and the reserve
  constexpr u32 kSmall = kSlotBytes / 16;                              // events in a block
  struct Case {
    u32 small;  // events of 16 bytes before the large one
    bool fits;
  };
  for (const Case& c : {Case{(kBlocks - 1) * kSmall, true}, Case{(kBlocks - 1) * kSmall + 1, false},
                        Case{(kBlocks - 2) * kSmall + 1, true}, Case{(kBlocks - 2) * kSmall + 3, true},
                        Case{kBlocks * kSmall - 1, false}, Case{kBlocks * kSmall, false}}) {
    SCOPED_TRACE(c.small);
    ProducerParts parts;
    alignas(64) std::array<u8, kBytes> queue{};
    u64 csr = 0;
    EventProducer producer({queue.data(), 0}, &csr, kBytes, 0);
    InitiatorEvent small;
    small.type = EventType::ack;
    small.return_code = ReturnCode::ok;
    for (u32 n = 0; n < c.small; ++n) ASSERT_TRUE(producer.write(parts, small));
    TargetLongEvent large;
    large.type = EventType::put;
    large.return_code = ReturnCode::ok;
    static_assert(TargetLongEvent::kWords * 8 == kSlotBytes && InitiatorEvent::kWords * 8 == 16);
    EXPECT_EQ(producer.write(parts, large), c.fits);
    EXPECT_EQ(producer.dropped(), c.fits ? 0u : 1u);
    const u8* const reserve = queue.data() + kBytes - 2 * kSlotBytes;
    EXPECT_TRUE(std::all_of(reserve, reserve + 2 * kSlotBytes, [](u8 b) { return b == 0; }));
    // The rest of a block that has been begun is there for events that fit.
    if (!c.fits) {
      EXPECT_EQ(producer.write(parts, small), c.small % kSmall != 0);
    }
  }
}

// --- counters ----------------------------------------------------------------------------------------------

TEST(CxiCounters, DoorbellPageAndWriteBack) {
  Rig rig;
  const Counter& c = rig.ct.counter;
  rig.ct.expect(0);
  EXPECT_TRUE(c.read().valid);
  c.add_success(5);
  rig.ct.expect(5);
  c.add_success(5);
  rig.ct.expect(10);
  c.add_failure(3);
  rig.ct.expect(10, 3);
  c.reset_success();
  rig.ct.expect(0, 3);
  c.reset_success();
  c.reset_failure();
  rig.ct.expect(0, 0);
  c.add_success(~u64{0});
  rig.ct.expect(kMaxSuccess);
  c.add_success(2);
  rig.ct.expect(1);
  c.add_failure(kMaxFailure);
  rig.ct.expect(1, kMaxFailure);
  c.add_failure(2);
  rig.ct.expect(1, 1);
  c.reset_failure();
  rig.ct.expect(1, 0);
}

/// Writes that the device finds in the doorbell page count in this order: additions first, then each reset,
/// of its own count alone.
TEST(CxiCounters, AResetEndsWhatWasAddedBeforeIt) {
  ModelConfig config;
  config.own_thread = false;
  ModelCassini nic(config, "cxi-model0");
  const auto endpoint = nic.open(ModelCassini::kDefaultService);
  const Counting ct(*endpoint);
  const auto counts = [&] {
    (void)nic.poll();
    const CounterCounts c = ct.read();
    return std::pair<u64, u64>(c.success, c.failure);
  };
  using Counts = std::pair<u64, u64>;
  ct.counter.add_success(5);
  ct.counter.add_failure(3);
  EXPECT_EQ(counts(), Counts(5, 3));
  ct.counter.add_success(7);
  ct.counter.reset_success();
  EXPECT_EQ(counts(), Counts(0, 3));
  ct.counter.add_success(4);
  ct.counter.add_failure(2);
  ct.counter.reset_failure();
  EXPECT_EQ(counts(), Counts(4, 0));
  ct.counter.add_success(1);
  ct.counter.add_failure(1);
  EXPECT_EQ(counts(), Counts(5, 1));
  ct.counter.reset_success();
  ct.counter.reset_failure();
  EXPECT_EQ(counts(), Counts(0, 0));
}

TEST(CxiCounters, Commands) {
  Rig rig;
  const u32 ct = rig.ct.index();
  rig.triggered.submit(CounterCommand::set(ct, 1000, 5));
  rig.ct.expect(1000, 5);
  rig.triggered.submit(CounterCommand::increment(ct, 10, 2));
  rig.ct.expect(1010, 7);
  rig.triggered.submit(CounterCommand::increment(ct, 0, 1));
  rig.ct.expect(1010, 8);
  CounterCommand c = CounterCommand::set(ct, 1, 1);
  c.set_ct_failure = false;
  rig.triggered.submit(c);
  rig.ct.expect(1, 8);
  c = CounterCommand::set(ct, 9, 0);
  c.set_ct_success = false;
  rig.triggered.submit(c);
  rig.ct.expect(1, 0);
  c.opcode = CounterOpcode::get;
  rig.triggered.submit(c);
  rig.ct.expect(1, 0);
  // Behind one doorbell a set ends what was counted before it, and not what is counted after it.
  rig.triggered.post(CounterCommand::increment(ct, 10, 2));
  rig.triggered.post(CounterCommand::set(ct, 500, 3));
  rig.triggered.post(CounterCommand::increment(ct, 1, 1));
  rig.triggered.ring();
  rig.ct.expect(501, 4);
}

TEST(CxiTriggers, FireOnceWhenTheCountIsReached) {
  Rig rig;
  const u32 ct = rig.ct.index(), eq = rig.tx_events.index();
  rig.triggered.submit(CounterCommand::trig_event(ct, 3, eq));
  rig.tx.submit(rig.put(64));
  rig.tx.submit(rig.put(64));
  rig.ct.expect(2);
  rig.tx_events.expect_none();
  rig.tx.submit(rig.put(64));
  const auto e = rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op);
  EXPECT_EQ(e.threshold, 3u);
  EXPECT_EQ(e.ct_handle, ct);
  rig.tx.submit(rig.put(64));
  rig.ct.expect(4);
  rig.tx_events.expect_none();
  // Reached already while arming.
  for (const u64 threshold : {0ull, 1ull, 4ull}) {
    rig.triggered.submit(CounterCommand::trig_event(ct, threshold, eq));
    EXPECT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, threshold);
  }
  // A count that jumps over several: each once, the lowest first, equals in the order of their arming.
  Counting flag(*rig.endpoint);
  for (const u64 threshold : {9ull, 6ull, 8ull, 6ull})
    rig.triggered.post(CounterCommand::trig_event(ct, threshold, eq));
  rig.triggered.ring();
  rig.triggered.submit(CounterCommand::set(flag.index(), 1, 0));
  flag.expect(1);
  rig.ct.counter.add_success(4);
  for (const u64 threshold : {6ull, 6ull, 8ull})
    EXPECT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, threshold);
  rig.tx_events.expect_none();
  rig.ct.counter.add_failure(5);
  rig.tx_events.expect_none();
  rig.triggered.submit(CounterCommand::set(ct, 9, 0));
  EXPECT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, 9u);
  EXPECT_EQ(rig.counter("triggered_operations"), 8u);
}

TEST(CxiTriggers, ThePatternOfTheLoopback) {
  Rig rig({.slots = 64});
  u64 threshold = 0;
  for (u32 n = 1; n <= 200; ++n) {
    threshold += n % 7 + 1;
    rig.triggered.submit(CounterCommand::trig_event(rig.ct.index(), threshold, rig.tx_events.index()));
    rig.tx.queue->post_puts(lane, n % 7 + 1, [&](u32) { return rig.put(64); });
    rig.tx.ring();
    ASSERT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, threshold);
    ASSERT_EQ(rig.ct.read().success, threshold);
  }
}

TEST(CxiTriggers, CommandsThatCauseOthers) {
  Rig rig;
  Counting second(*rig.endpoint), third(*rig.endpoint);
  // ct at 2 -> second +10; second at 10 -> third = 77; third at 77 -> a put, which counts on ct.
  CounterCommand increment = CounterCommand::increment(second.index(), 10, 0);
  increment.opcode = CounterOpcode::trig_increment;
  increment.trig_ct = rig.ct.index();
  increment.threshold = 2;
  CounterCommand set = CounterCommand::set(third.index(), 77, 3);
  set.opcode = CounterOpcode::trig_set;
  set.trig_ct = second.index();
  set.threshold = 10;
  TrigDma put;
  put.when = CounterCommand::trig_event(third.index(), 77, rig.tx_events.index());
  put.dma = rig.put(500);
  rig.triggered.post(increment);
  rig.triggered.post(set);
  rig.triggered.post(put);
  rig.triggered.post(CounterCommand::trig_event(rig.ct.index(), 3, rig.tx_events.index()));
  rig.triggered.ring();
  rig.ct.counter.add_success(1);
  rig.ct.expect(1);
  second.expect(0);
  EXPECT_FALSE(rig.arrived(500));
  rig.ct.counter.add_success(1);
  EXPECT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, 3u);
  second.expect(10);
  third.expect(77, 3);
  rig.ct.expect(3);
  EXPECT_TRUE(rig.arrived(500));
}

TEST(CxiTriggers, CancelTellsTheEvents) {
  Rig rig;
  const u32 ct = rig.ct.index();
  rig.triggered.post(CounterCommand::trig_event(ct, 7, rig.tx_events.index()));
  rig.triggered.post(CounterCommand::trig_event(ct, 5, rig.tx_events.index()));
  CounterCommand cancel;
  cancel.opcode = CounterOpcode::cancel;
  cancel.ct = ct;
  rig.triggered.submit(cancel);
  for (const u64 threshold : {5ull, 7ull})
    EXPECT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op, ReturnCode::canceled).threshold,
              threshold);
  rig.ct.counter.add_success(100);
  rig.ct.expect(100);
  rig.tx_events.expect_none();
}

TEST(CxiTriggers, SoManyMayWait) {
  Rig rig;
  const auto wait = CounterCommand::trig_event(rig.ct.index(), 1, rig.tx_events.index());
  for (u32 n = 0; n < kMaxTriggers; ++n) rig.triggered.submit(wait);
  rig.tx_events.expect_none();
  rig.triggered.submit(wait);
  (void)rig.tx_events.expect<CommandFailureEvent>(EventType::command_failure, ReturnCode::no_space);
  rig.ct.counter.add_success(1);
  for (u32 n = 0; n < kMaxTriggers; ++n)
    ASSERT_EQ(rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op).threshold, 1u) << n;
  rig.tx_events.expect_none();
}

// --- time
// ---------------------------------------------------------------------------------------------------

double seconds_of(Rig& rig, u32 puts, u32 bytes) {
  const u64 before = rig.ct.read().success;
  const u64 begin = wall_ns();
  for (u32 i = 0; i < puts; ++i) rig.tx.post(rig.put(bytes));
  rig.tx.ring();
  EXPECT_TRUE(rig.ct.reaches(before + puts));
  return static_cast<double>(wall_ns() - begin) * 1e-9;
}

TEST(CxiTime, LatencyRateWindowAndDoorbell) {
  Rig latency({.spec = "cxi-model0:latency=5ms"});
  double s = seconds_of(latency, 100, 64);
  EXPECT_GE(s, 0.005);
  EXPECT_LT(s, 0.4) << "they overlap";

  Rig rate({.spec = "cxi-model0:bandwidth=100M"});
  EXPECT_GE(seconds_of(rate, 20, 100'000), 0.0199);

  Rig overhead({.spec = "cxi-model0:bandwidth=100M,overhead=4096"});
  EXPECT_GE(seconds_of(overhead, 20, 2048 * 20), 0.0245);

  Rig window({.spec = "cxi-model0:latency=2ms,window=4"});
  EXPECT_GE(seconds_of(window, 40, 64), 0.0199);

  Rig doorbell({.spec = "cxi-model0:doorbell=5ms"});
  EXPECT_GE(seconds_of(doorbell, 10, 64), 0.005);

  Rig jitter({.spec = "cxi-model0:jitter=5ms"});
  s = seconds_of(jitter, 50, 64);
  EXPECT_GE(s, 0.002) << "the longest of fifty";
}

TEST(CxiTime, AWindowThatStopsInTheMiddleOfASlotGoesOn) {
  Rig rig({.spec = "cxi-model0:latency=100us,window=1", .slots = 64});
  for (u32 n = 1; n <= 50; ++n) {
    rig.tx.queue->post_puts(lane, 5, [&](u32) { return rig.put(64); });
    rig.tx.ring();
    rig.ct.expect(5 * u64{n});
  }
}

}  // namespace
}  // namespace doorbell::cxi
