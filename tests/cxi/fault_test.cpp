// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the software Cassini: each fault that it counts as injected has its effect, and nothing else goes
// wrong.

#include <thread>

#include "rig.hpp"

namespace doorbell::cxi {
namespace {

using model::Fault;

constexpr u32 kPuts = 1000;
constexpr u32 kBytes = 64;

/// Puts of different bytes to different places.
void put_all(Rig& rig, u32 puts = kPuts) {
  for (u32 i = 0; i < puts; ++i) rig.tx.post(rig.put(kBytes, u64{i} * kBytes, u64{i} * kBytes));
  rig.tx.ring();
}

u32 places_that_differ(Rig& rig, u32 puts = kPuts) {
  u32 n = 0;
  for (u32 i = 0; i < puts; ++i) n += rig.arrived(kBytes, u64{i} * kBytes, u64{i} * kBytes) ? 0u : 1u;
  return n;
}

/// The device has executed so many operations, whatever became of them.
void expect_executed(const Rig& rig, u64 n) {
  EXPECT_TRUE(eventually([&] { return rig.counter("puts") + rig.counter("refused_operations") == n; }));
}

TEST(CxiFaults, LostAcknowledgements) {
  Rig rig({.faults = only(Fault::drop, 0.05)});
  put_all(rig);
  expect_executed(rig, kPuts);
  const u64 lost = rig.injected("drop");
  EXPECT_GT(lost, 10u);
  rig.ct.expect(kPuts - lost);
  EXPECT_EQ(places_that_differ(rig), 0u) << "only their acknowledgements are lost";
  rig.tx_events.expect_none();
}

TEST(CxiFaults, NegativeAcknowledgements) {
  Rig rig({.faults = only(Fault::error, 0.05)});
  put_all(rig);
  expect_executed(rig, kPuts);
  const u64 refused = rig.injected("error");
  ASSERT_GT(refused, 10u);
  ASSERT_LT(refused, kMaxFailure);
  rig.ct.expect(kPuts - refused, static_cast<u32>(refused));
  for (u64 i = 0; i < refused; ++i) {
    const auto e = rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::undeliverable);
    EXPECT_TRUE(e.tgt_error);
    EXPECT_EQ(e.mlength, 0u);
  }
  rig.tx_events.expect_none();
  EXPECT_EQ(places_that_differ(rig), refused);
}

TEST(CxiFaults, TheCodeOfANegativeAcknowledgement) {
  Rig rig({.spec = "cxi-model0:nack=60", .faults = only(Fault::error)});
  rig.tx.submit(rig.put(64));
  (void)rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::resource_busy);
  rig.ct.expect(0, 1);
}

TEST(CxiFaults, LateAcknowledgements) {
  Rig rig({.spec = "cxi-model0:delay=100ms", .faults = only(Fault::delay, 0.02)});
  const u64 begin = wall_ns();
  put_all(rig);
  expect_executed(rig, kPuts);
  const u64 late = rig.injected("delay");
  ASSERT_GT(late, 5u);
  EXPECT_TRUE(rig.ct.reaches(kPuts - late));
  const u64 success = rig.ct.read().success;
  if (wall_ns() - begin < 100'000'000) {  // no late one had come when it was read
    EXPECT_EQ(success, kPuts - late);
  }
  rig.ct.expect(kPuts);
  EXPECT_GE(wall_ns() - begin, 100'000'000u);
  EXPECT_EQ(places_that_differ(rig), 0u);
}

TEST(CxiFaults, WhatIsOnItsWayToACounterThatGoesIsNotForTheNextOfItsNumber) {
  Rig rig({.spec = "cxi-model0:delay=50ms", .faults = only(Fault::delay)});
  auto first = std::make_unique<Counting>(*rig.endpoint);
  const u32 number = first->index();
  NomatchDma put = rig.put(kBytes);
  put.ct = number;
  rig.tx.submit(put);
  expect_executed(rig, 1);
  first.reset();
  const Counting next(*rig.endpoint);
  ASSERT_EQ(next.index(), number) << "this test needs the number to be used again";
  // Acknowledgements that are equally late come in their order.
  rig.tx.submit(rig.put(kBytes));
  rig.ct.expect(1);
  EXPECT_EQ(next.read().success, 0u);
}

TEST(CxiFaults, AcknowledgementsThatCountTwice) {
  Rig rig({.faults = only(Fault::duplicate, 0.05)});
  put_all(rig);
  expect_executed(rig, kPuts);
  const u64 twice = rig.injected("duplicate");
  EXPECT_GT(twice, 10u);
  rig.ct.expect(kPuts + twice);
  EXPECT_EQ(places_that_differ(rig), 0u);
  // An event comes twice, too.
  Rig events({.faults = only(Fault::duplicate)});
  NomatchDma put = events.put(64);
  put.flags.event_success_disable = false;
  events.tx.submit(put);
  (void)events.tx_events.expect<InitiatorEvent>(EventType::ack);
  (void)events.tx_events.expect<InitiatorEvent>(EventType::ack);
  events.tx_events.expect_none();
}

TEST(CxiFaults, FlippedBytes) {
  Rig rig({.faults = only(Fault::corrupt, 0.05)});
  put_all(rig);
  rig.ct.expect(kPuts);
  EXPECT_GT(rig.injected("corrupt"), 10u);
  EXPECT_EQ(places_that_differ(rig), rig.injected("corrupt"));
  // One byte each.
  u32 bytes = 0;
  for (u64 i = 0; i < u64{kPuts} * kBytes; ++i) bytes += rig.near.data()[i] != rig.far.data()[i] ? 1u : 0u;
  EXPECT_EQ(bytes, rig.injected("corrupt"));
}

TEST(CxiFaults, FlippedBytesOfGets) {
  Rig rig({.faults = only(Fault::corrupt)});
  rig.far.fill(9);
  rig.near.clear();
  rig.tx.submit(rig.get(4096));
  rig.ct.expect(1);
  u32 bytes = 0;
  for (u32 i = 0; i < 4096; ++i) bytes += rig.near.data()[i] != rig.far.data()[i] ? 1u : 0u;
  EXPECT_EQ(bytes, 1u);
}

TEST(CxiFaults, AcknowledgedAndNotDone) {
  Rig rig({.faults = only(Fault::stale, 0.05)});
  put_all(rig);
  rig.ct.expect(kPuts);
  EXPECT_GT(rig.injected("stale"), 10u);
  EXPECT_EQ(places_that_differ(rig), rig.injected("stale"));
}

TEST(CxiFaults, BytesAtAnotherPlace) {
  Rig rig({.faults = only(Fault::misplace)});
  rig.tx.submit(rig.put(64));
  rig.ct.expect(1);
  EXPECT_EQ(rig.injected("misplace"), 1u);
  EXPECT_FALSE(rig.arrived(64));
  EXPECT_TRUE(rig.arrived(64, 0, 64));
  // At the end of the buffer it is the place before.
  const u64 last = rig.far.md->bytes() - 64;
  rig.tx.submit(rig.put(64, 640, last));
  rig.ct.expect(2);
  EXPECT_TRUE(rig.arrived(64, 640, last - 64));
  // Where there is no other place, nothing is injected.
  rig.tx.submit(rig.put(static_cast<u32>(rig.far.md->bytes())));
  rig.ct.expect(3);
  EXPECT_EQ(rig.injected("misplace"), 2u);
  EXPECT_TRUE(rig.arrived(rig.far.md->bytes()));
}

TEST(CxiFaults, HeldBackIsLegal) {
  Rig rig({.faults = only(Fault::reorder, 0.1)});
  put_all(rig);
  rig.ct.expect(kPuts);
  EXPECT_GT(rig.injected("reorder"), 20u);
  EXPECT_EQ(places_that_differ(rig), 0u);
}

TEST(CxiFaults, TheDeviceGoesAway) {
  Rig rig({.faults = only(Fault::removal, 0.01)});
  const u32* const alive = rig.device->alive(Initiator::cpu);
  EXPECT_EQ(load_acquire(alive), 1u);
  put_all(rig);
  EXPECT_TRUE(eventually([&] { return load_acquire(alive) == 0; }));
  EXPECT_EQ(rig.injected("removal"), 1u);
  const u64 done = rig.counter("puts");
  EXPECT_LT(done, kPuts);
  rig.tx.ring();
  let_rounds_pass(*rig.endpoint);
  EXPECT_EQ(rig.counter("puts"), done);
}

TEST(CxiFaults, WhatIsNotReportedIsNotInjected) {
  Rig rig({.faults = only(Fault::drop)});
  NomatchDma put = rig.put(64);
  put.flags.event_ct_ack = false;
  rig.tx.submit(put);
  expect_executed(rig, 1);
  EXPECT_EQ(rig.injected("drop"), 0u);
}

TEST(CxiFaults, TheSameSeedChoosesTheSameOperations) {
  const auto chosen = [](u64 seed) {
    Rig rig({.faults = only(Fault::stale, 0.05), .seed = seed});
    put_all(rig);
    rig.ct.expect(kPuts);
    std::vector<bool> out;
    for (u32 i = 0; i < kPuts; ++i) out.push_back(rig.arrived(kBytes, u64{i} * kBytes, u64{i} * kBytes));
    return out;
  };
  EXPECT_EQ(chosen(5), chosen(5));
  EXPECT_NE(chosen(5), chosen(6));
}

// --- what only this device can do
// ------------------------------------------------------------------------------

TEST(CxiFaults, AnEventQueueWithoutRoom) {
  Rig rig({.spec = "cxi-model0:eq-full=3"});
  for (u64 n = 1; n <= 3; ++n) {
    rig.triggered.submit(CounterCommand::trig_event(rig.ct.index(), n, rig.tx_events.index()));
    rig.tx.submit(rig.put(64));
    (void)rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op);
  }
  rig.triggered.submit(CounterCommand::trig_event(rig.ct.index(), 4, rig.tx_events.index()));
  rig.tx.submit(rig.put(64));
  rig.ct.expect(4);
  // The trigger fires behind the count.
  EXPECT_TRUE(eventually([&] { return rig.injected("eq_full") == 1; }));
  EXPECT_TRUE(rig.tx_events.queue->status(lane).unackd_dropped);
  EXPECT_EQ(rig.counter("dropped_events"), 1u);
  rig.tx_events.expect_none();
}

TEST(CxiFaults, AReadPointerThatStands) {
  Rig rig({.spec = "cxi-model0:stuck-read=10", .slots = 64});
  u32 posted = 0;
  while (rig.tx.queue->post(lane, rig.put(64))) {
    rig.tx.ring();
    ++posted;
    rig.ct.expect(posted);
  }
  EXPECT_GE(posted, 10u);
  EXPECT_LT(posted, 100u);
  // Full for ever, although everything has been executed.
  let_rounds_pass(*rig.endpoint);
  EXPECT_LT(rig.tx.queue->room(lane), 2u);
  EXPECT_EQ(rig.injected("stuck_read"), 1u);
}

TEST(CxiFaults, APortalsEntryThatIsDisabledInMidRun) {
  Rig rig({.spec = "cxi-model0:pte-disable=100"});
  put_all(rig, 150);
  rig.ct.expect(100, 50);
  const auto e = rig.rx_events.expect<StateChangeLongEvent>(EventType::state_change);
  EXPECT_EQ(e.ptlte_state, PtlteState::disabled);
  EXPECT_TRUE(e.by_nic);
  for (u32 n = 0; n < 50; ++n) {
    EXPECT_TRUE(rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::pt_disabled).tgt_error);
  }
  EXPECT_EQ(rig.injected("pte_disable"), 1u);
  // Enabled again, it stays so.
  rig.set_state(PtlteState::enabled);
  put_all(rig, 150);
  rig.ct.expect(250, 50);
}

// --- several initiators
// ----------------------------------------------------------------------------------------

TEST(CxiThreads, QueuesOfTheirOwnAndOneTarget) {
  Rig rig;
  constexpr u32 kThreads = 3, kEach = 400;
  std::vector<std::thread> threads;
  for (u32 t = 0; t < kThreads; ++t)
    threads.emplace_back([&rig, t] {
      Counting ct(*rig.endpoint);
      Commands queue(*rig.endpoint, CommandQueueKind::transmit, 64, nullptr);
      for (u32 i = 0; i < kEach; ++i) {
        const u64 at = u64{t * kEach + i} * kBytes;
        NomatchDma put = rig.put(kBytes, at, at);
        put.ct = ct.index();
        queue.submit(put);
        if (i % 16 == 0) {
          EXPECT_TRUE(ct.reaches(i + 1));
          EXPECT_EQ(std::memcmp(rig.near.data() + at, rig.far.data() + at, kBytes), 0);
        }
      }
      EXPECT_TRUE(ct.reaches(kEach));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(places_that_differ(rig, kThreads * kEach), 0u);
}

}  // namespace
}  // namespace doorbell::cxi
