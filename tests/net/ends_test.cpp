// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Both ends of a run over a wire in memory: every packet and every injected fault is accounted for.
#include <doorbell/error.hpp>
#include <doorbell/net/crc32c.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>

#include "computing_gpu.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "memory_queues.hpp"
#include "net/ends.hpp"
#include "net/relay.hpp"

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

model::FaultRates only(model::Fault f, double p) {
  model::FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
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

/// What is held back is late, each packet once; a machine that is busy may make others late too.
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

std::vector<u8> packet(u16 tag, u16 stream, u64 sequence, u32 data) {
  std::vector<u8> bytes(kHeaderBytes + data);
  Header h;
  h.run_tag = tag;
  h.data_bytes = data;
  h.stream_sequence = stream_sequence(stream, sequence);
  h.version_flags |= kHasDataCrc << 4;
  h.data_crc32c = crc32c(bytes.data() + kHeaderBytes, data);
  h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
  std::memcpy(bytes.data(), &h, kHeaderBytes);
  return bytes;
}

TEST(NetReceiver, ClassifiesWhatIsNotItsOwn) {
  auto wire = std::make_shared<MemoryWire>();
  MemoryRx queue(wire);
  ReceiverOptions o;
  o.run_tag = 5;
  o.spreading.flows = 3;
  o.queue = 1;
  o.spreading.queues = 2;
  Receiver r(o, queue);
  const auto take = [&](std::vector<u8> bytes) {
    wire->packets.push_back(std::move(bytes));
    EXPECT_EQ(r.step(), 1u);
    return r.counts();
  };
  EXPECT_EQ(take(packet(5, 1, 0, 40)).unique, 1u);
  EXPECT_EQ(take(packet(6, 1, 1, 40)).alien, 1u) << "another run's";
  EXPECT_EQ(take(std::vector<u8>(100, 0x11)).alien, 2u);
  auto other_version = packet(5, 1, 1, 40);
  other_version[1] = 2;
  const u32 crc = crc32c(other_version.data(), 28);
  std::memcpy(other_version.data() + 28, &crc, 4);
  EXPECT_EQ(take(other_version).alien, 3u);
  EXPECT_EQ(take(packet(5, 2, 0, 40)).misplaced, 1u) << "another queue's flow";
  EXPECT_EQ(take(packet(5, 9, 0, 40)).misplaced, 2u) << "no flow at all";
  EXPECT_EQ(take(packet(5, 1, u64{1} << 40, 40)).misplaced, 3u) << "out of reach";
  EXPECT_EQ(take(std::vector<u8>(31, 0xdb)).alien, 4u) << "what has no header is nobody's";
  EXPECT_EQ(take({}).alien, 5u);
  auto cut = packet(5, 1, 1, 40);
  cut.pop_back();
  EXPECT_EQ(take(cut).short_, 1u);
  auto damaged = packet(5, 1, 1, 40);
  damaged.back() ^= 1;
  EXPECT_EQ(take(damaged).corrupt, 1u);
  EXPECT_EQ(take(packet(5, 1, 1, 0)).unique, 2u) << "no data at all";
  EXPECT_EQ(take(packet(5, 1, 1, 40)).duplicate, 1u);
  EXPECT_EQ(r.counts().received, r.counts().classified());
}

/// Keeps the numbers of what it gets.
class NumberSink final : public PacketSink {
 public:
  u64 take(const Burst& burst, std::span<const u32> packet, std::span<const u16> flow,
           std::span<const u64> number) override {
    for (u32 u = 0; u < packet.size(); ++u) {
      Header h;
      std::memcpy(&h, burst.data[packet[u]], kHeaderBytes);
      EXPECT_EQ(h.stream(), flow[u]);
      EXPECT_EQ(h.sequence(), (first + number[u]) & kSequenceMask);
      numbers.push_back(number[u]);
    }
    return 0;
  }
  u64 first = 0;
  std::vector<u64> numbers;
};

TEST(NetReceiver, ABurstMayHaveAnything) {
  auto wire = std::make_shared<MemoryWire>();
  MemoryRx queue(wire);
  NumberSink sink;
  ReceiverOptions o;
  o.first_sequence = sink.first = kSequenceMask - 3;  // the fifth packet's wraps
  o.spreading.flows = 2;
  Receiver r(o, queue, &sink);
  const auto add = [&](u16 flow, u64 number) {
    wire->packets.push_back(packet(0, flow, (o.first_sequence + number) & kSequenceMask, 40));
  };
  for (u64 n = 0; n < 8; ++n) add(0, n);
  for (u64 n = 0; n < 3; ++n) add(1, n);
  add(0, 7);                               // again, and so are the next two
  for (u64 n = 6; n < 10; ++n) add(0, n);  // of which two are new
  for (u64 n = 12; n < 14; ++n) add(0, n);
  for (u64 n = 10; n < 12; ++n) add(0, n);  // behind newer ones
  add(1, 4);
  wire->packets.push_back(std::vector<u8>(10, 0xdb));
  auto damaged = packet(0, 0, 11, 40);
  damaged[9] ^= 1;
  wire->packets.push_back(damaged);
  EXPECT_EQ(r.step(), 23u);
  EXPECT_EQ(sink.numbers, (std::vector<u64>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 8, 9, 12, 13, 10, 11, 4}));
  const ReceiveCounts& c = r.counts();
  EXPECT_EQ(c.unique, 18u);
  EXPECT_EQ(c.unique_bytes, 18u * 72);
  EXPECT_EQ(c.checked, 18u);
  EXPECT_EQ(c.checked_bytes, 18u * 72);
  EXPECT_EQ(c.duplicate, 3u);
  EXPECT_EQ(c.out_of_order, 2u);
  EXPECT_EQ(c.alien, 1u);
  EXPECT_EQ(c.corrupt, 1u);
  EXPECT_EQ(c.received, c.classified());
  EXPECT_EQ(r.map(1).lost(o.first_sequence + 5), 1u);
}

/// Says when it took a burst.
class TimedRx final : public MemoryRx {
 public:
  using MemoryRx::MemoryRx;
  u32 receive(Burst& burst) override {
    const u32 n = MemoryRx::receive(burst);
    burst.rx_time_ns = now_ns;
    return n;
  }
  u64 now_ns = 0;
};

TEST(NetReceiver, LatePacketsOfABurstAreCountedAmongOthers) {
  auto wire = std::make_shared<MemoryWire>();
  TimedRx queue(wire);
  ReceiverOptions o;
  o.late_ns = 5000;
  o.latency_every = 8;
  Receiver r(o, queue, nullptr);
  queue.now_ns = 100'000;
  const auto add = [&](u64 number, u64 age_ns) {
    auto p = packet(0, 0, number, 40);
    Header h;
    std::memcpy(&h, p.data(), sizeof h);
    h.tx_time_ns = queue.now_ns - age_ns;
    h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
    std::memcpy(p.data(), &h, sizeof h);
    wire->packets.push_back(p);
  };
  for (u64 n = 0; n < 20; ++n) add(n, 5000);
  EXPECT_EQ(r.step(), 20u);
  EXPECT_EQ(r.counts().late, 0u) << "all of them just in time";
  EXPECT_EQ(r.latency().count(), 3u) << "0, 8 and 16 are timed";
  for (u64 n = 20; n < 40; ++n) add(n, n % 10 == 5 ? 5001 : 100);
  add(3, 90'000);  // a duplicate
  EXPECT_EQ(r.step(), 21u);
  EXPECT_EQ(r.counts().late, 2u);
  EXPECT_EQ(r.latency().count(), 5u);
  for (u64 n = 40; n < 44; ++n) add(n, 6000);
  EXPECT_EQ(r.step(), 4u);
  EXPECT_EQ(r.counts().late, 6u);
  EXPECT_EQ(r.latency().max(), 6000u);
  EXPECT_EQ(r.counts().duplicate, 1u);
}

/// Uses packets until it is waited for.
class SlowSink final : public PacketSink {
 public:
  u64 take(const Burst&, std::span<const u32> packet, std::span<const u16>, std::span<const u64>) override {
    taken += packet.size();
    return ++marks;
  }
  void await(u64 mark) override { awaited.push_back(mark); }
  u64 taken = 0, marks = 0;
  std::vector<u64> awaited;
};

TEST(NetReceiver, TakesTheNextBurstWhileTheSinkUsesOne) {
  auto wire = std::make_shared<MemoryWire>();
  MemoryRx queue(wire);
  SlowSink sink;
  ReceiverOptions o;
  o.burst = 2;
  Receiver r(o, queue, &sink);
  for (u64 n = 0; n < 5; ++n) wire->packets.push_back(packet(0, 0, n, 40));
  EXPECT_EQ(r.step(), 2u);
  EXPECT_EQ(wire->released, 0u);
  EXPECT_TRUE(sink.awaited.empty());
  EXPECT_EQ(r.step(), 2u);
  EXPECT_EQ(wire->released, 2u);
  EXPECT_EQ(sink.awaited, std::vector<u64>{1});
  EXPECT_EQ(r.step(), 1u);
  EXPECT_EQ(wire->released, 4u);
  // What is not there frees the last one.
  EXPECT_EQ(r.step(), 0u);
  EXPECT_EQ(wire->released, 5u);
  EXPECT_EQ(sink.awaited, (std::vector<u64>{1, 2, 3}));
  r.settle();
  EXPECT_EQ(sink.awaited.size(), 3u);
  // A packet that the sink does not get leaves nothing to wait for.
  wire->packets.push_back(packet(0, 0, 4, 40));
  EXPECT_EQ(r.step(), 1u);
  EXPECT_EQ(wire->released, 6u);
  EXPECT_EQ(r.counts().duplicate, 1u);
  EXPECT_EQ(sink.taken, 5u);
}

TEST(NetReceiver, AQueueWithRoomForOneBurstGetsItBack) {
  auto wire = std::make_shared<MemoryWire>();
  Relay relay({}, std::make_unique<MemoryRx>(wire), 64, 72);
  SlowSink sink;
  Receiver r({}, relay, &sink);
  for (u64 n = 0; n < 300; ++n) wire->packets.push_back(packet(0, 0, n, 40));
  // That a burst is out is no silence.
  while (r.counts().received < 300) ASSERT_GT(r.step(), 0u);
  EXPECT_EQ(r.step(), 0u);
  EXPECT_EQ(r.counts().unique, 300u);
  EXPECT_EQ(wire->released, 300u);
  EXPECT_EQ(sink.awaited.size(), sink.marks);
}

/// Knows what of the host's memory it reaches.
class PinningGpu final : public net::test::ComputingGpu {
 public:
  [[nodiscard]] void* allocate_pinned(u64 bytes) override {
    begin = static_cast<u8*>(net::test::ComputingGpu::allocate_pinned(bytes));
    end = begin + bytes;
    return begin;
  }
  u8 *begin = nullptr, *end = nullptr;
};

TEST(NetRelay, WhatItHoldsBackLiesWhereAGpuReadsIt) {
  const auto gpu = std::make_shared<PinningGpu>();
  auto wire = std::make_shared<MemoryWire>();
  Relay relay({.rates = only(model::Fault::reorder, 1), .place = Place::pinned, .gpu = gpu},
              std::make_unique<MemoryRx>(wire), 64, 72);
  for (u64 n = 0; n < 10; ++n) wire->packets.push_back(packet(0, 0, n, 40));
  Burst burst(64);
  u32 out = 0;
  EXPECT_TRUE(doorbell::test::eventually([&] {
    relay.receive(burst);
    for (u32 i = 0; i < burst.count; ++i) {
      EXPECT_GE(burst.data[i], gpu->begin);
      EXPECT_LE(burst.data[i] + burst.length[i], gpu->end);
      EXPECT_EQ((burst.data[i] - gpu->begin) % 128, 0) << "at a line of PCIe";
    }
    out += burst.count;
    if (burst.count > 0) relay.release(burst);
    return out == 10;
  }));
}

TEST(NetRelay, DataInGpuMemoryIsLeftAlone) {
  const auto over_gpu_memory = [](model::Fault fault) {
    auto wire = std::make_shared<MemoryWire>();
    const Relay relay({.rates = only(fault, 1), .place = Place::gpu, .gpu = std::make_shared<PinningGpu>()},
                      std::make_unique<MemoryRx>(wire), 64, 72);
  };
  for (const model::Fault f :
       {model::Fault::delay, model::Fault::corrupt, model::Fault::duplicate, model::Fault::reorder})
    doorbell::test::expect_says(doorbell::test::error_of([&] { over_gpu_memory(f); }),
                                fmt::format("fault {}", model::name(f)));
  over_gpu_memory(model::Fault::drop);
  over_gpu_memory(model::Fault::misplace);
}

TEST(NetRelay, HandsOutNoMoreThanABurstHolds) {
  for (const u32 capacity : {1u, 2u, 3u}) {
    auto wire = std::make_shared<MemoryWire>();
    Relay relay({.rates = only(model::Fault::duplicate, 1)}, std::make_unique<MemoryRx>(wire), capacity, 64);
    for (u64 n = 0; n < 10; ++n) wire->packets.push_back(packet(5, 0, n, 32));
    Burst burst(capacity);
    u32 out = 0;
    while (relay.receive(burst) > 0) {
      ASSERT_LE(burst.count, capacity);
      out += burst.count;
      relay.release(burst);
    }
    EXPECT_EQ(out, 20u);
  }
}

/// Raw links bring payloads of any length.
TEST(NetRelay, PassesOnWhatIsShorterThanAHeader) {
  for (const auto f : {model::Fault::corrupt, model::Fault::misplace, model::Fault::drop}) {
    auto wire = std::make_shared<MemoryWire>();
    Relay relay({.rates = only(f, 1)}, std::make_unique<MemoryRx>(wire), 64, 64);
    for (u32 bytes = 0; bytes < kHeaderBytes; ++bytes) wire->packets.emplace_back(bytes, u8{0xdb});
    Burst burst(64);
    EXPECT_EQ(relay.receive(burst), kHeaderBytes);
    for (u32 i = 0; i < burst.count; ++i)
      EXPECT_EQ(std::vector<u8>(burst.data[i], burst.data[i] + burst.length[i]), std::vector<u8>(i, 0xdb));
    relay.release(burst);
    EXPECT_EQ(relay.injected().counted(f), 0u);
  }
}

TEST(NetRelay, RefusesFaultsThatNoRelayHas) {
  auto wire = std::make_shared<MemoryWire>();
  EXPECT_THROW(Relay({.rates = only(model::Fault::removal, 1)}, std::make_unique<MemoryRx>(wire), 8, 64),
               Error);
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
