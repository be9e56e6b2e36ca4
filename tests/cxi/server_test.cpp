// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that is a Cassini in a kernel, with warps of several lanes and with warps that move data for it:
// whatever their number, memory, counts and events are those of one command after the other. What a Cassini
// must do is tested by cxi_model_test, for which one lane serves.

#include <random>
#include <thread>

#include "cxi/model/served_engine.hpp"
#include "emulated_warp.hpp"
#include "model/emulated_block.hpp"
#include "rig.hpp"
#include "sanitized.hpp"

namespace doorbell::cxi {
namespace {

template <u32 kLanes, u32 kHelpers>
using Block = test::EmulatedBlock<ServedEngine<EmulatedWarp<kLanes>, HostClock>, EmulatedWarp<kLanes>,
                                  ServerJob, kHelpers>;

template <u32 kLanes, u32 kHelpers>
ServeOnThread block() {
  return [](const ServerJob& job, u32 server) -> std::function<bool()> {
    return [b = std::make_shared<Block<kLanes, kHelpers>>(job, server)] { return b->poll(); };
  };
}

/// Every shape of a block. (That several helpers share a copy is tested by rdma_server_test.)
template <class Fn>
void each(const RigOptions& options, Fn&& fn) {
  const std::pair<const char*, ServeOnThread> shapes[] = {{"8 lanes, 1 helper", block<8, 1>()},
                                                          {"32 lanes alone", block<32, 0>()}};
  for (const auto& [name, shape] : shapes) {
    SCOPED_TRACE(name);
    RigOptions o = options;
    o.block = shape;
    Rig rig(o);
    fn(rig);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

constexpr u32 kBytes = 65536;

/// Commands of every kind, at places that overlap, in batches: memory is what they make of it one after the
/// other, and each is counted once.
TEST(CxiServer, WorksAsOneCommandAfterTheOther) {
  each({.bytes = kBytes, .slots = 256}, [](Rig& rig) {
    constexpr u32 kCommands = test::kSanitized ? 150 : 400;
    rig.far.fill(77);
    std::vector<u8> mine(rig.near.data(), rig.near.data() + kBytes),
        theirs(rig.far.data(), rig.far.data() + kBytes);
    std::mt19937 random(5);
    const auto below = [&](u32 n) { return static_cast<u32>(random() % n); };
    CState state;
    state.write_lac = rig.near.md->lac();
    state.flags = rig.put(0).flags;
    state.flags.restricted = true;
    state.index_ext = rig.dfa().index_ext;
    state.ct = rig.ct.index();
    rig.tx.post(state);
    u8 payload[200];
    u64 puts = 0, gets = 0, inlined = 0, unrestricted = 0;
    for (u32 posted = 0; posted < kCommands;) {
      const u32 batch = std::min(1 + below(40), kCommands - posted);
      const bool plain = below(3) != 0;  // some batches have only what several lanes can do together
      const bool full = below(3) == 0;   // all in commands of 64 bytes
      for (u32 i = 0; i < batch; ++i, ++posted) {
        const u32 n = below(20) == 0 ? below(9000) : below(300);
        // Few places, so that operations meet; of every alignment.
        const u32 a = below(2) == 0 ? below(32) * 512 : below(kBytes - n);
        const u32 b = below(2) == 0 ? below(32) * 512 : below(kBytes - n);
        const u32 kind = plain ? below(2) : below(4);
        if (kind == 2) {
          IdcPut idc;
          idc.dfa = rig.dfa().value;
          idc.remote_offset = b;
          idc.bytes = std::min<u32>(n, sizeof payload);
          idc.payload = payload;
          for (u8& byte : payload) byte = static_cast<u8>(random());
          rig.tx.post(idc);
          std::memcpy(theirs.data() + b, payload, idc.bytes);
          ++inlined;
          continue;
        }
        const bool get = kind == 1;
        if (full || kind == 3) {
          FullDma c;
          rig.set(c, n, a, b);
          c.opcode = get ? Opcode::get : Opcode::put;
          (get ? c.flags.event_ct_reply : c.flags.event_ct_ack) = true;
          rig.tx.post(c);
          ++unrestricted;
        } else {
          rig.tx.post(get ? rig.get(n, a, b) : rig.put(n, a, b));
        }
        if (get) std::memcpy(mine.data() + a, theirs.data() + b, n);
        else std::memcpy(theirs.data() + b, mine.data() + a, n);
        ++(get ? gets : puts);
      }
      if (below(4) == 0) rig.tx.queue->ring_low_latency(lane);
      else rig.tx.ring();
      ASSERT_TRUE(rig.ct.reaches(posted)) << rig.ct.read().success << " of " << posted;
      ASSERT_EQ(std::memcmp(rig.near.data(), mine.data(), kBytes), 0) << "after " << posted;
      ASSERT_EQ(std::memcmp(rig.far.data(), theirs.data(), kBytes), 0) << "after " << posted;
    }
    rig.tx_events.expect_none();
    rig.ct.expect(kCommands);
    const auto counts = rig.device->counters();
    EXPECT_EQ(counts["puts"], puts);
    EXPECT_EQ(counts["gets"], gets);
    EXPECT_EQ(counts["idc_puts"], inlined);
    EXPECT_EQ(counts["unrestricted"], unrestricted);
    EXPECT_EQ(counts["invalid_doorbell_values"], 0u);
    EXPECT_GT(counts["in_bursts"], kCommands / 4) << counts.dump();
    EXPECT_EQ(rig.tx.status().rd_ptr, rig.tx.queue->state().wp32 / 2);
  });
}

/// A burst ends before the first operation that is wrong; those behind it are carried out.
TEST(CxiServer, WhatIsWrongInABurstIsRefusedAlone) {
  each({.bytes = kBytes}, [](Rig& rig) {
    rig.tx.submit(rig.put(8));
    rig.ct.expect(1);
    constexpr u32 kPuts = 24, kWrong = 17;
    for (u32 i = 0; i < kPuts; ++i) rig.tx.post(rig.put(64, i * 64, i == kWrong ? kBytes : i * 64));
    rig.tx.ring();
    const auto refused = rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::addr_out_of_range);
    EXPECT_TRUE(refused.tgt_error);
    rig.ct.expect(kPuts, 1);  // the first one too
    EXPECT_TRUE(rig.arrived(kWrong * 64));
    EXPECT_TRUE(rig.arrived((kPuts - kWrong - 1) * 64, (kWrong + 1) * 64, (kWrong + 1) * 64));
    EXPECT_EQ(rig.counter("refused_operations"), 1u);
    EXPECT_EQ(rig.counter("puts"), kPuts);
  });
}

/// Operations without bytes are neighbours of none: those around them still wait for each other.
TEST(CxiServer, NothingLiesBetweenOperationsThatMeet) {
  each({.bytes = kBytes}, [](Rig& rig) {
    rig.tx.submit(rig.put(8));
    rig.ct.expect(1);
    // Commands of a slot each: no NOOP fills one.
    const auto put = [&](u32 n, u64 from, u64 to) {
      FullDma c;
      rig.set(c, n, from, to);
      c.opcode = Opcode::put;
      c.flags.event_ct_ack = true;
      rig.tx.post(c);
    };
    constexpr u32 kRounds = 100;
    for (u32 i = 0; i < kRounds; ++i) {
      std::memset(rig.near.data(), static_cast<int>(i), 64);
      std::memset(rig.near.data() + 64, static_cast<int>(i + 1), 64);
      put(64, 0, 0);
      put(0, 0, 4096);
      put(64, 64, 0);
      rig.tx.ring();
      ASSERT_TRUE(rig.ct.reaches(1 + 3 * (i + 1)));
      ASSERT_EQ(std::memcmp(rig.far.data(), rig.near.data() + 64, 64), 0) << i;
    }
    // Never all three together, whoever came last.
    EXPECT_GT(rig.counter("in_bursts"), 0u);
    EXPECT_LE(rig.counter("in_bursts"), 2 * kRounds);
  });
}

/// The counts of one counter do not reach another, though their operations follow each other.
TEST(CxiServer, EachCounterCountsItsOwn) {
  each({.bytes = kBytes}, [](Rig& rig) {
    const Counting other(*rig.endpoint);
    constexpr u32 kPuts = 300;
    u32 first = 0, second = 0;
    std::mt19937 random(3);
    for (u32 i = 0; i < kPuts; ++i) {
      NomatchDma put = rig.put(16, i * 64, i * 64);
      if (random() % 4 == 0) put.ct = other.index();
      ++(put.ct == other.index() ? second : first);
      rig.tx.post(put);
      if (random() % 16 == 0) rig.tx.ring();
    }
    rig.tx.ring();
    rig.ct.expect(first);
    other.expect(second);
  });
}

/// Several queues at once, with short rings that wrap many times, and triggers that fire as counts come.
TEST(CxiServer, QueuesOfSeveralThreads) {
  each({.bytes = 1u << 20}, [](Rig& rig) {
    constexpr u32 kThreads = 3, kEach = test::kSanitized ? 300 : 2000, kLength = 96;
    for (u32 n = 1; n <= 20; ++n)
      rig.triggered.post(CounterCommand::trig_event(rig.ct.index(), n * kEach / 10, rig.tx_events.index()));
    rig.triggered.ring();
    std::vector<std::thread> threads;
    for (u32 t = 0; t < kThreads; ++t)
      threads.emplace_back([&rig, t] {
        // Two share a counter, and the third has its own.
        std::optional<Counting> own;
        if (t == 2) own.emplace(*rig.endpoint);
        Commands queue(*rig.endpoint, CommandQueueKind::transmit, 64, nullptr);
        for (u32 i = 0; i < kEach; ++i) {
          const u64 at = u64{t * kEach + i} * kLength;
          NomatchDma put = rig.put(kLength, at, at);
          if (own) put.ct = own->index();
          queue.post(put);
          if (i % 7 == 0) queue.ring();
          // post() waits for room, which only a doorbell brings.
          if (i % 32 == 31) queue.ring();
        }
        queue.ring();
        if (own) own->expect(kEach);
        else EXPECT_TRUE(rig.ct.reaches(2 * kEach));
      });
    for (std::thread& t : threads) t.join();
    EXPECT_TRUE(rig.arrived(u64{kThreads} * kEach * kLength));
    for (u32 n = 1; n <= 20; ++n) {
      const auto e = rig.tx_events.expect<TriggeredEvent>(EventType::triggered_op);
      EXPECT_EQ(e.threshold, n * kEach / 10);
    }
    EXPECT_EQ(rig.counter("puts"), kThreads * kEach);
    EXPECT_GT(rig.counter("in_bursts"), 0u);
  });
}

/// A put that is larger than what one helper does alone, and faults, which lane 0 carries out.
TEST(CxiServer, LargePutsAndFaults) {
  model::FaultRates rates = only(model::Fault::corrupt, 0.2);
  rates.probability[static_cast<u32>(model::Fault::drop)] = 0.1;
  each({.faults = rates, .bytes = 1u << 20}, [](Rig& rig) {
    constexpr u32 kPuts = 40, kLength = 25'000;
    for (u32 i = 0; i < kPuts; ++i) rig.tx.submit(rig.put(kLength, i * kLength, i * kLength));
    EXPECT_TRUE(eventually([&] {
      return rig.ct.read().success == kPuts - rig.injected("drop") && rig.counter("puts") == kPuts;
    }));
    u64 damaged = 0;
    for (u32 i = 0; i < kPuts; ++i) damaged += rig.arrived(kLength, i * kLength, i * kLength) ? 0 : 1;
    EXPECT_EQ(damaged, rig.injected("corrupt"));
    EXPECT_GT(damaged, 0u);
    EXPECT_EQ(rig.counter("in_bursts"), 0u);
  });
}

/// A block has room for fewer objects than the device's numbers could name. What finds none is refused, and
/// the device goes on.
TEST(CxiServer, WhatABlockHasNoRoomForIsRefused) {
  Rig rig({.block = serve_with_one_lane()});
  const auto fill = [&](u32 most, auto create) {
    std::vector<decltype(create())> all;
    while (all.size() <= most) {
      try {
        all.push_back(create());
      } catch (const CallError& e) {
        EXPECT_EQ(e.errno_code(), ENOSPC);
        break;
      }
    }
    return all.size();
  };
  Endpoint& e = *rig.endpoint;
  for (int twice = 0; twice < 2; ++twice) {
    // Number 0 is none, and the rig has some of each.
    EXPECT_EQ(fill(5000, [&] { return e.create_counter(true, Place::pageable); }), ServedRoom::kCounters - 2);
    EXPECT_EQ(fill(5000, [&] { return e.create_event_queue(4096, Place::pageable); }),
              ServedRoom::kEventQueues - 3);
    EXPECT_EQ(fill(5000, [&] { return e.create_command_queue({}); }), ServedRoom::kTransmitQueues - 2);
    EXPECT_EQ(fill(5000, [&] { return e.create_command_queue({.kind = CommandQueueKind::target}); }),
              ServedRoom::kTargetQueues - 1);
    EXPECT_EQ(fill(5000, [&] { return e.map(rig.near.region, Access::read); }), ServedRoom::kMemories - 2);
    u32 offset = 0;
    EXPECT_EQ(fill(250, [&] { return e.create_portals_entry(*rig.rx_events.object, ++offset); }),
              ServedRoom::kEntries - 1);
    rig.far.clear();
    const u64 before = rig.ct.read().success;
    rig.tx.submit(rig.put(4096));
    EXPECT_TRUE(rig.ct.reaches(before + 1));
    EXPECT_TRUE(rig.arrived(4096));
  }
}

/// List entries beyond those in the block's own memory: used once each, in their order, and used again.
TEST(CxiServer, ManyListEntries) {
  Rig rig({.enable = false, .block = serve_with_one_lane()});
  rig.set_state(PtlteState::enabled);
  constexpr u32 kAppended = 2 * kServedEntries + 50, kLength = 64;
  static_assert(kAppended * kLength <= 1u << 20);
  for (u32 lap = 1; lap <= 2; ++lap) {
    rig.far.clear();
    for (u32 i = 0; i < kAppended; ++i) {
      Append a =
          rig.entry(append_flag::use_once | append_flag::unlink_disable | append_flag::success_disable |
                    append_flag::comm_disable | append_flag::link_disable | append_flag::op_put);
      a.start += u64{i} * kLength;
      a.length = kLength;
      rig.target.submit(a);
    }
    let_rounds_pass(*rig.endpoint);
    for (u32 i = 0; i < kAppended; ++i) rig.tx.submit(rig.put(kLength, u64{i} * kLength, 0));
    rig.ct.expect(lap * kAppended, lap - 1);
    EXPECT_TRUE(rig.arrived(kAppended * kLength));
    rig.tx.submit(rig.put(kLength));
    (void)rig.tx_events.expect<InitiatorEvent>(EventType::ack, ReturnCode::dropped);
  }
}

}  // namespace
}  // namespace doorbell::cxi
