// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Both ends of a run over a wire in memory: every packet and every injected fault is accounted for.
#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <gtest/gtest.h>

#include <thread>

#include "eventually.hpp"
#include "memory_queues.hpp"
#include "model/faults.hpp"
#include "net/flow/ends.hpp"
#include "net/flow/relay.hpp"

namespace doorbell::net {
namespace {

struct Rig {
  struct Setup {
    u32 flows = 1, queues = 1, payload = 200;
    model::FaultRates faults = {};
    u64 start = 0;
    bool reliable = false;
    bool verify = true;
    u64 delay_ns = 5'000'000;
    double timeout_s = 10;
    u64 late_ns = 1'000'000'000;
    u32 burst = 32;
  };
  explicit Rig(const Setup& s) : setup(s) {
    for (u32 q = 0; q < s.queues; ++q) {
      wires.push_back(std::make_shared<MemoryWire>());
      std::unique_ptr<RxQueue> queue = std::make_unique<MemoryRx>(wires[q]);
      if (s.faults.any()) {
        auto relay = std::make_unique<Relay>(
            RelayOptions{.rates = s.faults, .seed = 3, .delay_ns = s.delay_ns, .queue = q}, std::move(queue),
            s.burst, s.payload);
        relays.push_back(relay.get());
        queue = std::move(relay);
      }
      rx.push_back(std::move(queue));
    }
    for (u32 f = 0; f < s.flows; ++f)
      tx.push_back(std::make_unique<MemoryTx>(wires[f % s.queues], s.payload));
    ReceivingOptions r;
    r.receiver.run_tag = 77;
    r.receiver.spreading.flows = s.flows;
    r.receiver.burst = s.burst;
    r.receiver.first_sequence = s.start;
    r.receiver.verify = s.verify;
    r.receiver.map_span = 4096;
    r.receiver.late_ns = s.late_ns;
    r.reliable = s.reliable;
    r.settle_s = 0.1;
    r.timeout_s = s.timeout_s;
    receiving = std::make_unique<LocalReceivingEnd>(r, rx);
    SendingOptions o;
    o.sender.run_tag = 77;
    o.sender.payload_bytes = s.payload;
    o.sender.batch = 16;
    o.sender.first_sequence = s.start;
    o.threads = 1;
    o.timeout_s = s.timeout_s;
    sending = std::make_unique<SendingEnd>(o, tx);
  }
  ReceivePhase run(u64 count) {
    receiving->begin();
    sent = sending->run(0, count, {});
    return receiving->end(sending->sent());
  }
  ReceiveTotals finish() {
    EXPECT_TRUE(sending->finish());
    return receiving->finish(sending->sent());
  }
  [[nodiscard]] const MemoryWire& rx_wire() const { return *wires[0]; }
  [[nodiscard]] u64 injected(model::Fault f) const {
    u64 n = 0;
    for (const Relay* r : relays) n += r->injected().counted(f);
    return n;
  }

  Setup setup;
  std::vector<std::shared_ptr<MemoryWire>> wires;
  std::vector<std::unique_ptr<TxQueue>> tx;
  std::vector<std::unique_ptr<RxQueue>> rx;
  std::vector<Relay*> relays;
  std::unique_ptr<SendingEnd> sending;
  std::unique_ptr<LocalReceivingEnd> receiving;
  SendPhase sent;
};

u64 sum_of(const std::vector<u64>& sent) {
  u64 all = 0;
  for (const u64 n : sent) all += n;
  return all;
}

TEST(NetEnds, EveryPacketArrivesOnce) {
  for (const auto& [flows, queues] : {std::pair{1u, 1u}, {2u, 1u}, {3u, 2u}, {2u, 2u}}) {
    Rig rig({.flows = flows, .queues = queues, .reliable = true});
    for (int phase = 0; phase < 3; ++phase) {
      const ReceivePhase p = rig.run(1500);
      EXPECT_EQ(p.counts.unique, 1500u * flows);
      EXPECT_EQ(p.counts.unique_bytes, 1500u * flows * 200);
      EXPECT_EQ(p.counts.checked, p.counts.unique);
      EXPECT_FALSE(p.timed_out);
      EXPECT_GT(p.elapsed_s, 0);
      EXPECT_EQ(p.latency.count(), p.counts.unique);
    }
    const ReceiveTotals t = rig.finish();
    EXPECT_EQ(t.counts.unique, 4500u * flows);
    EXPECT_EQ(t.counts.received, t.counts.classified());
    EXPECT_EQ(t.lost + t.beyond, 0u);
  }
}

TEST(NetEnds, SequencesWrap) {
  Rig rig({.start = (u64{1} << 48) - 700, .reliable = true});
  EXPECT_EQ(rig.run(3000).counts.unique, 3000u);
  EXPECT_EQ(rig.finish().lost, 0u);
}

TEST(NetEnds, EveryInjectedFaultIsFoundAsItsClass) {
  using model::Fault;
  for (const Fault f : relay_faults()) {
    Rig rig({.flows = 2, .queues = 1, .faults = only(f, 0.05)});
    (void)rig.run(2000);
    const ReceiveTotals t = rig.finish();
    const u64 n = rig.injected(f);
    const u64 sent = sum_of(rig.sending->sent());
    SCOPED_TRACE(model::name(f));
    EXPECT_GT(n, 50u);
    EXPECT_EQ(sent, t.counts.unique + t.lost);
    EXPECT_EQ(t.counts.received, t.counts.classified());
    EXPECT_EQ(t.drops.relay, f == Fault::drop ? n : 0);
    EXPECT_EQ(t.counts.corrupt, f == Fault::corrupt ? n : 0);
    EXPECT_EQ(t.counts.duplicate, f == Fault::duplicate ? n : 0);
    EXPECT_EQ(t.counts.misplaced, f == Fault::misplace ? n : 0);
    const bool lost = f == Fault::drop || f == Fault::corrupt || f == Fault::misplace;
    EXPECT_EQ(t.lost, lost ? n : 0) << "no loss is unexplained";
    if (f == Fault::reorder) {
      EXPECT_GT(t.counts.out_of_order, 0u);
    } else if (f != Fault::delay) {
      EXPECT_EQ(t.counts.out_of_order, 0u);
    }
  }
}

/// A burst of one packet has no room for the second of two.
TEST(NetEnds, ADuplicateFitsWhereABurstIsOnePacket) {
  for (const u32 burst : {1u, 2u, 3u}) {
    Rig rig({.faults = only(model::Fault::duplicate, 0.5), .burst = burst});
    (void)rig.run(2000);
    const ReceiveTotals t = rig.finish();
    EXPECT_EQ(t.counts.unique, 2000u);
    EXPECT_GT(rig.injected(model::Fault::duplicate), 500u);
    EXPECT_EQ(t.counts.duplicate, rig.injected(model::Fault::duplicate));
  }
}

/// Whole bursts of which nothing is passed on.
TEST(NetEnds, ARelayThatDropsEverythingGivesEverythingBack) {
  for (const u32 burst : {1u, 2u, 32u})
    for (const double share : {0.5, 1.0}) {
      Rig rig({.faults = only(model::Fault::drop, share), .burst = burst});
      (void)rig.run(5000);
      const ReceiveTotals t = rig.finish();
      EXPECT_EQ(rig.rx_wire().taken, 5000u);
      EXPECT_EQ(rig.rx_wire().released, 5000u) << "burst " << burst;
      EXPECT_EQ(t.lost, rig.injected(model::Fault::drop));
      EXPECT_EQ(t.drops.relay, t.lost);
      EXPECT_EQ(t.counts.unique + t.lost, 5000u);
    }
}

/// Packets that are held back are late, each once; a machine that is busy may make others late too.
TEST(NetEnds, WhatIsHeldBackIsLate) {
  Rig rig({.faults = only(model::Fault::delay, 0.05), .delay_ns = 20'000'000, .late_ns = 19'000'000});
  (void)rig.run(2000);
  const ReceiveTotals t = rig.finish();
  EXPECT_GT(rig.injected(model::Fault::delay), 50u);
  EXPECT_GE(t.counts.late, rig.injected(model::Fault::delay));
  EXPECT_EQ(t.counts.unique, 2000u);
}

TEST(NetEnds, UnverifiedDataMayBeAnything) {
  Rig rig({.faults = only(model::Fault::corrupt, 1), .verify = false});
  (void)rig.run(1000);
  const ReceiveTotals t = rig.finish();
  EXPECT_EQ(t.counts.checked, 0u);
  EXPECT_GT(t.counts.unique, 500u) << "the damage is in data that is not checked";
  EXPECT_GT(t.counts.corrupt, 50u) << "headers are always checked";
  EXPECT_EQ(t.counts.unique + t.counts.corrupt, 1000u);
}

TEST(NetEnds, DropsOfTheWireAreTheLoss) {
  Rig rig({});
  rig.wires[0]->capacity = 100;
  rig.wires[0]->drop_when_full = true;
  (void)rig.run(20'000);
  const ReceiveTotals t = rig.finish();
  EXPECT_EQ(t.lost, t.drops.ring);
  EXPECT_EQ(t.counts.unique + t.lost, 20'000u);
}

/// A reliable stream that has lost packets without a word.
TEST(NetEnds, WhatAReliableStreamOwesTimesOut) {
  Rig rig({.reliable = true, .timeout_s = 0.5});
  (void)rig.run(100);
  rig.wires[0]->capacity = 0;
  rig.wires[0]->drop_when_full = true;
  const ReceivePhase p = rig.run(10);
  EXPECT_TRUE(p.timed_out);
  EXPECT_EQ(rig.finish().lost, 10u);
}

/// The receivers have stopped taking packets.
TEST(NetEnds, ASenderWithoutRoomEnds) {
  Rig rig({.timeout_s = 0.2});
  rig.wires[0]->capacity = 10;
  const SendPhase p = rig.sending->run(0, 100, {});
  EXPECT_TRUE(p.stuck);
  EXPECT_EQ(p.sent, 10u);
  // One that merely waits until packets are due does not count as stuck.
  Rig paced({.timeout_s = 0.05});
  paced.sending->packets_per_s(4);
  EXPECT_FALSE(paced.sending->run(0, 2, {}).stuck);
}

/// Strangers' packets without end, until a test lets go.
class Flood final : public RxQueue {
 public:
  u32 receive(Burst& b) override {
    b.count = quiet ? 0 : b.capacity();
    for (u32 i = 0; i < b.count; ++i) b.data[i] = bytes_, b.length[i] = sizeof bytes_;
    return b.count;
  }
  void release(Burst& b) override { b.count = 0; }
  void wait(u64) override {}
  [[nodiscard]] Drops drops() override { return {}; }
  std::atomic<bool> quiet{false};

 private:
  u8 bytes_[64]{};
};

TEST(NetEnds, AReceiverThatIsNeverQuietEnds) {
  std::vector<std::unique_ptr<RxQueue>> queues;
  queues.push_back(std::make_unique<Flood>());
  auto& flood = static_cast<Flood&>(*queues[0]);
  ReceivingOptions o;
  o.reliable = false;
  o.timeout_s = 0.1;
  LocalReceivingEnd end(o, queues);
  end.begin();
  std::atomic<bool> ended{false};
  std::thread watchdog([&] {
    for (int i = 0; i < 6000 && !ended; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    flood.quiet = true;
  });
  const ReceivePhase p = end.end({100});
  EXPECT_FALSE(flood.quiet) << "it ended by itself";
  ended = true;
  watchdog.join();
  EXPECT_GT(p.counts.alien, 0u);
}

TEST(NetEnds, WhatAReceiverThrowsReachesTheCaller) {
  Threads threads("rx", 2, {}, [](u32 i, ThreadUse*) {
    if (i == 1) throw Error("thread", "broken");
  });
  EXPECT_THROW(threads.join(), Error);
  EXPECT_TRUE(threads.ended() && threads.failed());
  threads.join();  // told once

  class Broken final : public RxQueue {
   public:
    u32 receive(Burst&) override { throw Error("queue", "broken"); }
    void release(Burst&) override {}
    void wait(u64) override {}
    [[nodiscard]] Drops drops() override { return {}; }
  };
  std::vector<std::unique_ptr<RxQueue>> queues;
  queues.push_back(std::make_unique<Broken>());
  LocalReceivingEnd end({}, queues);
  end.begin();
  EXPECT_TRUE(doorbell::test::eventually([&] { return end.gone(); }));
  EXPECT_THROW((void)end.end({1}), Error);
}

TEST(Pacer, ReleasesWhatIsDue) {
  Pacer p(1e6, 0);  // one a microsecond
  EXPECT_EQ(p.allowed(64, 0), 1u);
  p.sent(1);
  EXPECT_EQ(p.allowed(64, 999), 0u);
  EXPECT_EQ(p.due_ns(), 1000u);
  EXPECT_EQ(p.allowed(64, 10'000), 10u);
  p.sent(10);
  EXPECT_EQ(p.allowed(64, 1'000'000), Pacer::kBurst) << "small bursts";
  EXPECT_EQ(p.skipped(), 0u);
  EXPECT_EQ(p.allowed(5, 1'000'000'000), 5u);
  EXPECT_GT(p.skipped(), 990'000u) << "after a second's pause the rest never leaves";
  EXPECT_EQ(Pacer(0, 0).allowed(64, 0), 64u);
}

}  // namespace
}  // namespace doorbell::net
