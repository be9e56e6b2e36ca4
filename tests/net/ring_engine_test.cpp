// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/frames.hpp"
#include "net/raw/toeplitz.hpp"
#include "net/raw_packets.hpp"
#include "sanitized.hpp"

namespace doorbell::net::raw {
namespace {

using test::error_of;
using test::expect_says;
using test_packets::Checker;
using test_packets::Sender;

class RingLink final : public Link {
 public:
  explicit RingLink(std::string spec = "ring", u32 mtu = 9000) : spec_(std::move(spec)), mtu_(mtu) {}
  [[nodiscard]] std::string name() const override { return spec_; }
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] u32 mtu() const override { return mtu_; }

 private:
  std::string spec_;
  u32 mtu_;
};

StreamRequest request_of(u32 bytes, u32 flows = 1, u32 queues = 1) {
  StreamRequest r;
  r.payload_bytes = bytes;
  r.flows = flows;
  r.rx_queues = queues;
  return r;
}

std::unique_ptr<Stream> open_on(const StreamRequest& r, const std::string& spec = "ring") {
  // The stream needs the link no longer than to be opened.
  RingLink link(spec);
  return ring_engine().open(r, link);
}

TEST(RingEngine, AllPacketsArriveOnceAndUnchanged) {
  for (const u32 bytes : {32u, 64u, 1000u, 8000u, 8972u}) {
    SCOPED_TRACE(bytes);
    const auto s = open_on(request_of(bytes));
    test_packets::expect_all_arrive(*s, 2500, bytes);
  }
}

TEST(RingEngine, EachEncapsulationArrives) {
  test_packets::expect_each_encapsulation_arrives(
      request_of(64, 5, 3), [](const StreamRequest& r) { return open_on(r); }, 1500);
  StreamRequest r = request_of(45);
  r.encapsulation = Encapsulation::bare;
  expect_says(error_of([&] { (void)open_on(r); }), "46..9000");
  r = request_of(8953);
  r.encapsulation = Encapsulation::udp6;
  expect_says(error_of([&] { (void)open_on(r); }), "32..8952");
  r = request_of(64);
  r.encapsulation = Encapsulation::bare, r.steering = Steering::rss;
  expect_says(error_of([&] { (void)open_on(r); }), "no addresses");
}

TEST(RingEngine, FlowsReachTheirQueues) {
  for (const auto& [flows, queues] : {std::pair{1u, 2u}, {2u, 1u}, {2u, 2u}, {5u, 3u}}) {
    SCOPED_TRACE(fmt::format("{} x {}", flows, queues));
    const auto s = open_on(request_of(200, flows, queues));
    ASSERT_EQ(s->tx.size(), flows);
    ASSERT_EQ(s->rx.size(), queues);
    test_packets::expect_all_arrive(*s, 1500, 200);
  }
}

TEST(RingEngine, HeaderAndDataLieApartWithSplit) {
  StreamRequest r = request_of(1000);
  r.split = true;
  const auto s = open_on(r);
  test_packets::expect_all_arrive(*s, 1500, 1000);
  Sender sender(*s->tx[0], 0);
  Burst burst(8);
  // A slot's length may change from packet to packet.
  for (const u32 bytes : {1000u, 32u, 33u}) {
    const u64 n = 3000;  // its own numbers: the queue does not ask for a sequence without gaps
    test_packets::make_payload(0, n, bytes, s->tx[0]->slots().payload(n));
    ASSERT_EQ(s->tx[0]->send(n, 1, bytes), 1u);
    ASSERT_EQ(s->rx[0]->receive(burst), 1u);
    EXPECT_TRUE(burst.split);
    EXPECT_EQ(burst.length[0], kHeaderBytes);
    EXPECT_EQ(burst.body_length[0], bytes - kHeaderBytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(burst.body[0]) % 64, 0u);
    s->rx[0]->release(burst);
  }
}

TEST(RingEngine, DataGoesToTheGpuWithSplit) {
  for (const u32 bytes : {32u, 1000u, 8000u}) {
    StreamRequest r = request_of(bytes);
    const auto gpu = std::make_shared<test_packets::CopyingGpu>();
    r.split = true;
    r.place = Place::gpu;
    r.gpu = gpu;
    test_packets::expect_all_arrive(*open_on(r), 500, bytes);
    // One call to the driver for a burst, not for a packet.
    EXPECT_EQ(gpu->batches > 0, bytes > kHeaderBytes);
    EXPECT_LT(gpu->batches, 500u);
  }
}

TEST(RingEngine, DataIsAlignedForVectorLoads) {
  const auto s = open_on(request_of(100));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->tx[0]->slots().payload(1)) % 32, 0u);
  EXPECT_EQ(s->tx[0]->slots().count, kTemplates);
  Burst burst(64);
  ASSERT_EQ(s->tx[0]->send(0, 5, 100), 5u);
  ASSERT_EQ(s->rx[0]->receive(burst), 5u);
  for (u32 i = 0; i < 5; ++i) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(burst.data[i]) % 64, 0u);
  EXPECT_FALSE(burst.split);
  s->rx[0]->release(burst);
}

TEST(RingEngine, AFullRingHoldsTheSenderBack) {
  const auto s = open_on(request_of(64), "ring:depth=128");
  Sender sender(*s->tx[0], 0);
  EXPECT_EQ(sender.send(100, 64), 100u);
  EXPECT_EQ(sender.send(100, 64), 28u);
  EXPECT_EQ(sender.send(100, 64), 0u);
  EXPECT_EQ(s->tx[0]->completed(), 128u);
  // Packets that have been taken and not been given back are still the receiver's.
  Burst burst(50);
  ASSERT_EQ(s->rx[0]->receive(burst), 50u);
  EXPECT_EQ(sender.send(100, 64), 0u);
  s->rx[0]->release(burst);
  EXPECT_EQ(sender.send(100, 64), 50u);
  EXPECT_EQ(s->rx[0]->drops().sum(), 0u);
}

TEST(RingEngine, WhatFindsTheRingFullIsCountedWhenItIsDropped) {
  const auto s = open_on(request_of(64, 2, 1), "ring:depth=256,overflow=drop");
  Sender a(*s->tx[0], 0), b(*s->tx[1], 1);
  while (a.sent() < 1000) ASSERT_GT(a.send(37, 64), 0u);
  while (b.sent() < 300) ASSERT_EQ(b.send(1, 64), 1u);
  Checker c(*s->rx[0], 2);
  while (c.receive(64) > 0) {
  }
  EXPECT_EQ(c.received(), 512u);
  EXPECT_EQ(c.of_flow(0).size(), 256u);
  EXPECT_EQ(c.of_flow(1).size(), 256u);
  EXPECT_EQ(c.wrong(), 0u);
  EXPECT_EQ(s->rx[0]->drops().ring, a.sent() - 256 + b.sent() - 256);
  EXPECT_EQ(s->rx[0]->drops().sum(), s->rx[0]->drops().ring);
}

TEST(RingEngine, ForeignFramesAreCountedAndNotDelivered) {
  const auto s = open_on(request_of(64, 2, 2));
  TxQueue& tx = *s->tx[0];
  ASSERT_EQ(tx.send(0, 10, 64), 10u);
  Burst burst(64);
  ASSERT_EQ(s->rx[0]->receive(burst), 10u);
  s->rx[0]->release(burst);
  // Frames of which one byte is another's: a UDP port, the checksum of IPv4, the protocol, the EtherType.
  const u32 bytes[] = {37, kEthernetBytes + 10, kEthernetBytes + 9, 12};
  for (u32 i = 0; i < 4; ++i) {
    u8* const frame = tx.slots().payload(2 * i + 1) - kUdp4Bytes;
    frame[bytes[i]] ^= 0x11;
  }
  ASSERT_EQ(tx.send(0, 10, 64), 10u);
  ASSERT_EQ(s->rx[0]->receive(burst), 6u);
  s->rx[0]->release(burst);
  EXPECT_EQ(s->rx[0]->unmatched(), 4u);
  EXPECT_EQ(s->rx[1]->unmatched(), 0u);
  EXPECT_EQ(s->rx[1]->receive(burst), 0u);
}

TEST(RingEngine, RssGivesEachFlowTheQueueOfItsHash) {
  const u32 flows = 24, queues = 3;
  for (const RssFields fields : {RssFields::addresses_and_ports, RssFields::addresses}) {
    StreamRequest request = request_of(64, flows, queues);
    request.steering = Steering::rss;
    request.rss_fields = fields;
    const auto s = open_on(request);
    const std::vector<u16>& queue_of_flow = s->queue_of_flow;
    // By the definition of RSS: the hash of what a frame says, and entries of the table that name the queues
    // in turn.
    for (u32 f = 0; f < flows; ++f) {
      const u8* const frame = s->tx[f]->slots().payload(0) - 42;
      const u32 bytes = fields == RssFields::addresses ? 8 : 12;
      EXPECT_EQ(queue_of_flow[f], Toeplitz()({frame + 26, bytes}) % kRssEntries % queues) << f;
    }
    ASSERT_EQ(queue_of_flow.size(), flows);
    EXPECT_EQ((std::set<u32>(queue_of_flow.begin(), queue_of_flow.end())).size(), queues);
    for (u16 f = 0; f < flows; ++f) EXPECT_EQ(Sender(*s->tx[f], f).send(10, 64), 10u);
    for (u32 q = 0; q < queues; ++q) {
      Checker c(*s->rx[q], flows);
      while (c.receive(64) > 0) {
      }
      EXPECT_EQ(c.wrong(), 0u);
      for (u32 f = 0; f < flows; ++f) EXPECT_EQ(c.of_flow(f).size(), queue_of_flow[f] == q ? 10u : 0u) << f;
    }
  }
}

/// Longer than any test waits: a wake-up that is lost fails the case.
constexpr u64 kLongNs = 60'000'000'000;

TEST(RingEngine, ThreadsThatSleepUntilThereIsSomethingToDo) {
  const u32 packets = test::kSanitized ? 3000 : 20000;
  StreamRequest r = request_of(256, 2, 1);
  const auto s = open_on(r, "ring:depth=64");
  std::vector<std::thread> threads;
  for (u16 f = 0; f < 2; ++f)
    threads.emplace_back([&, f] {
      Sender sender(*s->tx[f], f);
      EXPECT_TRUE(test::eventually([&] {
        while (sender.send(static_cast<u32>(std::min<u64>(32, packets - sender.sent())), 256) > 0) {
        }
        if (sender.sent() < packets) s->tx[f]->wait(kLongNs);
        return sender.sent() == packets;
      }));
    });
  Checker c(*s->rx[0], 2);
  EXPECT_TRUE(test::eventually([&] {
    while (c.receive(256) > 0) {
    }
    if (c.received() < 2 * packets) s->rx[0]->wait(kLongNs);
    return c.received() == 2 * packets;
  }));
  for (std::thread& t : threads) t.join();
  for (u32 f = 0; f < 2; ++f) EXPECT_EQ(std::ranges::count(c.of_flow(f), 1u), static_cast<long>(packets));
  EXPECT_EQ(c.wrong(), 0u);
  EXPECT_EQ(c.out_of_order(), 0u);
}

TEST(RingEngine, AWaitEndsAtItsLimit) {
  const auto s = open_on(request_of(64), "ring:depth=2");
  const u64 begin = wall_ns();
  s->rx[0]->wait(2'000'000);
  EXPECT_GE(wall_ns() - begin, 2'000'000u);
  ASSERT_EQ(s->tx[0]->send(0, 2, 64), 2u);
  s->rx[0]->wait(~u64{0} >> 2);  // something is there already
  s->tx[0]->wait(1'000'000);
  EXPECT_EQ(s->tx[0]->send(2, 1, 64), 0u);
}

TEST(RingEngine, RefusesWhatItCannotDo) {
  RingLink ring, lo("lo"), narrow("ring", 1500);
  const StreamKind& k = ring_engine();
  EXPECT_TRUE(k.status().usable);
  EXPECT_EQ(k.overhead_bytes, 42u);
  EXPECT_EQ(k.max_payload(ring), 8972u);
  EXPECT_EQ(k.max_payload(narrow), 1472u);
  expect_says(error_of([&] { k.open(request_of(64), lo); }), "cannot use the link lo");
  expect_says(error_of([&] { k.open(request_of(31), ring); }), "32..8972");
  expect_says(error_of([&] { k.open(request_of(1473), narrow); }), "32..1472");
  expect_says(error_of([&] { k.open(request_of(64, 0), ring); }), "1..64");
  expect_says(error_of([&] { open_on(request_of(64), "ring:depth=100"); }), "100 is not a power of two");
  expect_says(error_of([&] { open_on(request_of(64), "ring:dept=100"); }), "did you mean 'depth'?");
  StreamRequest r = request_of(64);
  r.has_rx = false;
  expect_says(error_of([&] { k.open(r, ring); }), "one process");
  r = request_of(64, 3);
  r.port = 65534;
  expect_says(error_of([&] { k.open(r, ring); }), "above 65535");
  r = request_of(64);
  r.place = Place::gpu;
  expect_says(error_of([&] { k.open(r, ring); }), "split header and data");
}

}  // namespace
}  // namespace doorbell::net::raw
