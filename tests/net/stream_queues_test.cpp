// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The public way to the queues of a stream, as a program of somebody else uses it.

#include <doorbell/error.hpp>
#include <doorbell/net/packet.hpp>
#include <doorbell/net/stream_queues.hpp>
#include <doorbell/net/window_receiver.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "errors.hpp"
#include "eventually.hpp"
#include "net/raw_packets.hpp"

using namespace doorbell;
using namespace doorbell::net;

namespace {

constexpr u16 kTag = 77;
constexpr u32 kPayloadBytes = 256, kDataBytes = kPayloadBytes - kHeaderBytes;

u8 data_byte(u16 flow, u64 n, u32 i) {
  return static_cast<u8>(flow * 31 + n * 7 + i);
}

void write_packet(u8* payload, u16 flow, u64 n) {
  for (u32 i = 0; i < kDataBytes; ++i) payload[kHeaderBytes + i] = data_byte(flow, n, i);
  Header h;
  h.version_flags |= kHasDataCrc << 4;
  h.run_tag = kTag;
  h.data_bytes = kDataBytes;
  h.stream_sequence = stream_sequence(flow, n);
  h.data_crc32c = crc32c(payload + kHeaderBytes, kDataBytes);
  h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
  std::memcpy(payload, &h, kHeaderBytes);
}

/// Offers the packets first .. first + count - 1 and returns how many were taken.
u32 send(TxQueue& queue, u16 flow, u64 first, u32 count) {
  for (u64 n = first; n < first + count; ++n) write_packet(queue.slots().payload(n), flow, n);
  return queue.send(first, count, kPayloadBytes);
}

/// Keeps a copy of what is in each window.
class Keep final : public WindowConsumer {
 public:
  void take(const Window& w) override {
    EXPECT_EQ(w.index, next_[w.flow]++);
    const u8* const bytes = w.host != nullptr ? w.host : w.device;
    for (u32 s = 0; s < w.packets; ++s) {
      const bool arrived = (w.arrived[s / 64] >> (s % 64) & 1) != 0;
      for (u32 i = 0; i < kDataBytes; ++i)
        wrong += bytes[s * kDataBytes + i] !=
                 (arrived ? data_byte(static_cast<u16>(w.flow), w.first_packet + s, i) : 0);
    }
    packets[w.flow] += w.packets - w.missing;
    gpu = gpu || (w.host == nullptr && w.device != nullptr);
    w.give_back();
  }
  std::map<u32, u64> packets;
  u64 wrong = 0;
  bool gpu = false;

 private:
  std::map<u32, u64> next_;
};

TEST(StreamQueues, BurstsAreTakenAndGivenBack) {
  const auto s =
      StreamQueues::open("raw", "ring", {.payload_bytes = kPayloadBytes, .flows = 4, .rx_queues = 2});
  EXPECT_EQ(s->carrier(), "ring");
  ASSERT_EQ(s->tx_flows(), 4u);
  ASSERT_EQ(s->rx_queues(), 2u);
  EXPECT_EQ(s->queue_of_flow(), (std::vector<u16>{0, 1, 0, 1}));
  Burst burst(64);
  // More than the ring holds: what is not given back stays its sender's.
  for (u64 round = 0; round < 100; ++round)
    for (u16 f = 0; f < 4; ++f) {
      ASSERT_EQ(send(s->tx(f), f, round * 32, 32), 32u);
      RxQueue& rx = s->rx(s->queue_of_flow()[f]);
      ASSERT_EQ(rx.receive(burst), 32u);
      for (u32 i = 0; i < burst.count; ++i) {
        ASSERT_EQ(burst.length[i], kPayloadBytes);
        EXPECT_EQ(burst.data[i][kHeaderBytes + 5], data_byte(f, round * 32 + i, 5));
      }
      rx.release(burst);
    }
  EXPECT_EQ(s->drops().sum(), 0u);
  EXPECT_EQ(s->unmatched(), 0u);
  EXPECT_EQ(nlohmann::ordered_json::parse(s->facts()).at("stream").at("ring_depth"), 1024);
}

TEST(StreamQueues, DropsAreCounted) {
  const auto s = StreamQueues::open("raw", "ring:depth=16,overflow=drop", {.payload_bytes = kPayloadBytes});
  EXPECT_EQ(send(s->tx(0), 0, 0, 100), 100u);
  EXPECT_EQ(s->drops().ring, 84u);
  EXPECT_EQ(s->drops().sum(), 84u);
}

TEST(StreamQueues, RssChoosesTheQueueAndWindowsFollow) {
  constexpr u32 kFlows = 12, kQueues = 3, kPackets = 70;
  const auto s = StreamQueues::open(
      "raw", "ring",
      {.payload_bytes = kPayloadBytes, .flows = kFlows, .rx_queues = kQueues, .steering = Steering::rss});
  const std::vector<u16> queue_of_flow = s->queue_of_flow();
  EXPECT_EQ((std::set<u16>(queue_of_flow.begin(), queue_of_flow.end()).size()), kQueues);
  for (u16 f = 0; f < kFlows; ++f) ASSERT_EQ(send(s->tx(f), f, 0, kPackets), kPackets);
  for (u32 q = 0; q < kQueues; ++q) {
    Keep keep;
    WindowReceiver receiver(*s, {.queue = q, .run_tag = kTag, .shape = {.packets = 32}}, keep);
    while (receiver.step() > 0) {
    }
    receiver.finish(std::vector<u64>(kFlows, kPackets));
    const auto own = std::ranges::count(queue_of_flow, q);
    EXPECT_EQ(receiver.counts().unique, static_cast<u64>(own) * kPackets);
    EXPECT_EQ(receiver.counts().received, receiver.counts().unique);
    EXPECT_EQ(keep.packets.size(), static_cast<std::size_t>(own));
    for (const auto& [flow, n] : keep.packets) {
      EXPECT_EQ(queue_of_flow[flow], q);
      EXPECT_EQ(n, kPackets);
      EXPECT_EQ(receiver.lost(flow, kPackets), 0u);
    }
    EXPECT_EQ(keep.wrong, 0u);
  }
}

TEST(StreamQueues, WindowsInGpuMemory) {
  const auto s = StreamQueues::open("raw", "ring", {.payload_bytes = kPayloadBytes});
  Keep keep;
  WindowReceiver receiver(*s,
                          {.run_tag = kTag,
                           .shape = {.packets = 16},
                           .place = Place::gpu,
                           .gpu = std::make_shared<test_packets::CopyingGpu>()},
                          keep);
  EXPECT_EQ(receiver.window_bytes(), 16u * kDataBytes);
  ASSERT_EQ(send(s->tx(0), 0, 0, 40), 40u);
  // Of another run: counted, and in no window.
  write_packet(s->tx(0).slots().payload(40), 0, 40);
  s->tx(0).slots().payload(40)[2] ^= 1;
  Header h;
  std::memcpy(&h, s->tx(0).slots().payload(40), sizeof h);
  h.header_crc32c = crc32c(&h, kHeaderBytes - 4);
  std::memcpy(s->tx(0).slots().payload(40), &h, sizeof h);
  ASSERT_EQ(s->tx(0).send(40, 1, kPayloadBytes), 1u);
  while (receiver.step() > 0) {
  }
  receiver.finish({48});
  EXPECT_EQ(receiver.counts().unique, 40u);
  EXPECT_EQ(receiver.counts().alien, 1u);
  EXPECT_EQ(receiver.lost(0, 48), 8u);
  EXPECT_EQ(receiver.windows().windows, 3u);
  EXPECT_EQ(receiver.windows().missing, 8u);
  EXPECT_TRUE(keep.gpu);
  EXPECT_EQ(keep.packets[0], 40u);
  EXPECT_EQ(keep.wrong, 0u);
}

TEST(StreamQueues, EachEndInAProcessOfItsOwn) {
  StreamRequest there = {.payload_bytes = kPayloadBytes, .port = 18911}, here = there;
  there.has_tx = false;
  here.has_rx = false;
  here.other_end = "127.0.0.1";
  const auto rx = StreamQueues::open("udp", "", there);
  const auto tx = StreamQueues::open("udp", "", here);
  EXPECT_EQ(rx->tx_flows(), 0u);
  EXPECT_EQ(tx->rx_queues(), 0u);
  Keep keep;
  WindowReceiver receiver(*rx, {.run_tag = kTag, .shape = {.packets = 10}}, keep);
  ASSERT_EQ(send(tx->tx(0), 0, 0, 30), 30u);
  EXPECT_TRUE(test::eventually([&] {
    while (receiver.step() > 0) {
    }
    return receiver.counts().unique == 30;
  }));
  receiver.finish({30});
  EXPECT_EQ(keep.packets[0], 30u);
  EXPECT_EQ(keep.wrong, 0u);
}

TEST(StreamQueues, WhatCannotBeIsRefused) {
  const auto said = [](const std::string& stream, const std::string& link, StreamRequest r) {
    return test::error_of([&] { (void)StreamQueues::open(stream, link, r); });
  };
  test::expect_says(said("sctp", "lo", {}), "sctp");
  test::expect_says(said("raw", "nowhere", {}), "no link has this name");
  test::expect_says(said("raw", "ring", {.payload_bytes = 16}), "32..");
  test::expect_says(said("udp", "lo", {.payload_bytes = 1000, .split = true}), "split");
  test::expect_says(said("udp", "", {.has_tx = false, .has_rx = false}), "neither");
  test::expect_says(said("udp", "", {.has_rx = false}), "other_end");
  test::expect_says(said("raw", "lo", {.has_rx = false, .other_end = "127.0.0.1"}), "other_mac");
  const auto s = StreamQueues::open("raw", "ring", {.payload_bytes = kPayloadBytes});
  test::expect_says(test::error_of([&] { (void)s->rx(1); }), "receive queue 1");
  test::expect_says(test::error_of([&] { (void)s->tx(7); }), "flow 7");
  Keep keep;
  test::expect_says(test::error_of([&] { WindowReceiver r(*s, {.place = Place::gpu}, keep); }), "no GPU");
  test::expect_says(test::error_of([&] { WindowReceiver r(*s, {.shape = {.packets = 0}}, keep); }), "0");
}

TEST(StreamQueues, SaysWhatThisMachineCanUse) {
  std::set<std::string> names;
  for (const StreamSupport& s : stream_support()) {
    names.insert(s.name);
    EXPECT_FALSE(s.detail.empty()) << s.name;
    EXPECT_TRUE(s.name != "ring" || (s.usable && s.raw_engine));
  }
  EXPECT_EQ(names, (std::set<std::string>{"tcp", "udp", "roce", "ring", "af_packet", "af_xdp", "dpdk"}));
}

}  // namespace
