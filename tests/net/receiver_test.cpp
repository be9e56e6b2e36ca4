// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A receiver and a relay, burst by burst, without the threads of an end.
#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "computing_gpu.hpp"
#include "errors.hpp"
#include "eventually.hpp"
#include "memory_queues.hpp"
#include "model/faults.hpp"
#include "net/flow/receiver.hpp"
#include "net/flow/relay.hpp"

namespace doorbell::net {
namespace {

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
  // A step without a burst frees the last one.
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

}  // namespace
}  // namespace doorbell::net
