// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "errors.hpp"
#include "net/raw/af_xdp_queues.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/xdp_program.hpp"
#include "net/raw_packets.hpp"
#include "net/raw_veth.hpp"
#include "sanitized.hpp"

namespace doorbell::net::raw {
namespace {

using test::error_of;
using test::expect_says;
using test_packets::Checker;
using test_packets::Sender;
using test_packets::stream_request;

class AfXdp : public test_packets::OnVeth {
 protected:
  void SetUp() override {
    OnVeth::SetUp();
    if (const BackendStatus s = af_xdp_engine().status(); !s.usable) GTEST_SKIP() << s.detail;
  }
  static std::unique_ptr<Stream> open(const StreamRequest& r) { return af_xdp_engine().open(r, link()); }
};

TEST_F(AfXdp, AllPacketsArriveOnceAndUnchanged) {
  for (const u32 bytes : {32u, 64u, 1000u, 3776u, 3777u, 8000u, 8972u}) {
    SCOPED_TRACE(bytes);
    const auto s = open(stream_request(bytes));
    test_packets::expect_all_arrive(*s, 600, bytes);
    const auto facts = s->facts();
    EXPECT_EQ(facts["segmented_frames"], bytes > 3776 ? 600 : 0) << facts;
    EXPECT_EQ(facts["rx_copied"], bytes > 3776) << facts;
    EXPECT_TRUE(facts["xdp_mode"] == "native" || facts["xdp_mode"] == "generic") << facts;
  }
}

TEST_F(AfXdp, FlowsReachTheirQueues) {
  for (const auto& [flows, queues] : {std::pair{1u, 2u}, {2u, 1u}, {2u, 2u}}) {
    SCOPED_TRACE(fmt::format("{} x {}", flows, queues));
    const auto s = open(stream_request(200, flows, queues));
    ASSERT_EQ(s->tx.size(), flows);
    ASSERT_EQ(s->rx.size(), queues);
    test_packets::expect_all_arrive(*s, 500, 200);
  }
}

TEST_F(AfXdp, HeaderAndDataLieApartWithSplit) {
  for (const u32 bytes : {1000u, 8000u}) {
    StreamRequest r = stream_request(bytes);
    r.split = true;
    // More than the slots that packets are copied to.
    test_packets::expect_all_arrive(*open(r), bytes == 1000 ? 4500 : 600, bytes);
  }
}

TEST_F(AfXdp, DataGoesToTheGpuWithSplit) {
  for (const u32 bytes : {32u, 1000u, 8000u}) {
    StreamRequest r = stream_request(bytes);
    const auto gpu = std::make_shared<test_packets::CopyingGpu>();
    r.split = true;
    r.place = Place::gpu;
    r.gpu = gpu;
    test_packets::expect_all_arrive(*open(r), 500, bytes);
    // One call to the driver for a burst, not for a packet.
    EXPECT_EQ(gpu->batches > 0, bytes > kHeaderBytes);
    EXPECT_LT(gpu->batches, 500u);
  }
}

TEST_F(AfXdp, EachEncapsulationArrives) {
  test_packets::expect_each_encapsulation_arrives(stream_request(64, 2, 2), open, 300);
}

TEST_F(AfXdp, DataIsAlignedForVectorLoads) {
  const auto s = open(stream_request(100));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->tx[0]->slots().payload(1)) % 64, 0u);
  Sender sender(*s->tx[0], 0);
  EXPECT_EQ(sender.send(5, 100), 5u);
  Burst burst(64);
  EXPECT_TRUE(test::eventually([&] { return s->rx[0]->receive(burst) > 0; }));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(burst.data[0]) % 64, 0u);
}

TEST_F(AfXdp, DropsAreCountedExactlyWhenNobodyReads) {
  for (const u32 bytes : {64u, 8000u}) {
    SCOPED_TRACE(bytes);
    StreamRequest r = stream_request(bytes);
    r.socket_bytes = 1u << 20;  // 256 chunks for each of the interface's two queues
    const auto s = open(r);
    const u64 before = interface_drops();
    Sender sender(*s->tx[0], 0);
    EXPECT_TRUE(test::eventually([&] {
      // A completed packet has reached the ring, or found it full: the interfaces' own queues lose nothing.
      if (!s->tx[0]->finish()) return false;
      sender.send(static_cast<u32>(std::min<u64>(16, 1000 - sender.sent())), bytes);
      return sender.sent() == 1000;
    }));
    Checker c(*s->rx[0], 1);
    Drops d;
    EXPECT_TRUE(test::eventually([&] {
      c.receive(bytes);
      d = s->rx[0]->drops();
      return c.received() + d.ring == 1000;
    })) << c.received()
        << " received, " << d.ring << " dropped by the ring, " << interface_drops() - before
        << " by interfaces";
    EXPECT_EQ(c.received(), bytes == 64 ? 256u : 256u / 3);
    EXPECT_EQ(d.sum(), d.ring);
    EXPECT_EQ(c.wrong(), 0u);
  }
}

TEST_F(AfXdp, ForeignFramesReachNoQueue) {
  const StreamRequest r = stream_request(64, 2, 2);
  const auto s = open(r);
  FlowAddress a = flow_address(link(), r, 0);
  std::vector<u8> frame(kUdp4Bytes + 64);
  // Another port and a fragment go on to the kernel; checksums that are wrong and a payload that is too long
  // get past the program and are counted.
  a.destination_port = static_cast<u16>(r.port + 2);
  encode_udp4(a, 64, frame.data());
  inject(frame);
  a.destination_port = r.port;
  encode_udp4(a, 64, frame.data());
  frame[kEthernetBytes + 6] = 0x20;
  inject(frame);
  encode_udp4(a, 64, frame.data());
  frame[kEthernetBytes + 8] ^= 1;
  inject(frame);
  // Of UDP, where the sender has computed one.
  encode_udp4(a, 64, frame.data());
  frame[kUdp4Bytes - 2] = 0x12;
  inject(frame);
  std::vector<u8> longer(kUdp4Bytes + 65);
  encode_udp4(a, 65, longer.data());
  inject(longer);

  Sender sender(*s->tx[0], 0);
  EXPECT_EQ(sender.send(5, 64), 5u);
  Checker first(*s->rx[0], 2), second(*s->rx[1], 2);
  // An injected packet goes through the queue of whatever core injects it.
  EXPECT_TRUE(test::eventually([&] {
    first.receive(64);
    second.receive(64);
    return first.received() == 5 && s->rx[0]->unmatched() + s->rx[1]->unmatched() == 3;
  }));
  EXPECT_EQ(first.wrong(), 0u);
  EXPECT_EQ(second.received(), 0u);
}

TEST_F(AfXdp, ThreadsThatSleepUntilThereIsSomethingToDo) {
  const u32 packets = test::kSanitized ? 1000 : 5000;
  for (const u32 bytes : {500u, 8000u}) {
    SCOPED_TRACE(bytes);
    const auto s = open(stream_request(bytes));
    const u64 before = interface_drops();
    std::thread sending([&] {
      Sender sender(*s->tx[0], 0);
      EXPECT_TRUE(test::eventually([&] {
        while (sender.send(static_cast<u32>(std::min<u64>(32, packets - sender.sent())), bytes) > 0) {
        }
        if (sender.sent() < packets) s->tx[0]->wait(100'000'000);
        return sender.sent() == packets;
      }));
      EXPECT_TRUE(test::eventually([&] { return s->tx[0]->finish(); }));
      EXPECT_EQ(s->tx[0]->completed(), packets);
    });
    Checker c(*s->rx[0], 1);
    EXPECT_TRUE(test::eventually([&] {
      while (c.receive(bytes) > 0) {
      }
      if (c.received() < packets) s->rx[0]->wait(100'000'000);
      const u64 of_interfaces = interface_drops() - before;
      const u64 of_ring = s->interface_counts_ring_drops() ? 0 : s->rx[0]->drops().ring;
      return c.received() + of_ring + of_interfaces == packets;
    }));
    sending.join();
    EXPECT_EQ(c.wrong(), 0u);
    EXPECT_GT(c.received(), 0u);
  }
}

TEST_F(AfXdp, AnInterfaceThatGoesDownBreaksTheSender) {
  const auto s = open(stream_request(64));
  Sender sender(*s->tx[0], 0);
  EXPECT_EQ(sender.send(3, 64), 3u);
  EXPECT_FALSE(s->tx[0]->broken());
  set_up(false);
  sender.send(3, 64);
  EXPECT_TRUE(s->tx[0]->broken());
  set_up(true);
}

TEST_F(AfXdp, EndsGoInAnyOrderAndTheQueuesAreFreeAgain) {
  for (const bool rx_first : {true, false}) {
    const auto s = open(stream_request(1000, 2, 2));
    Sender sender(*s->tx[0], 0);
    EXPECT_GT(sender.send(20, 1000), 0u);
    Burst burst(8);
    EXPECT_TRUE(test::eventually([&] { return s->rx[0]->receive(burst) > 0; }));
    // The burst is not released, and packets are still there.
    if (rx_first) {
      s->rx.clear();
      EXPECT_GT(sender.send(20, 1000), 0u);
    } else {
      s->tx.clear();
    }
  }
  const auto s = open(stream_request(1000));
  test_packets::expect_all_arrive(*s, 100, 1000);
}

TEST_F(AfXdp, SaysWhatTheInterfaceDoesNotHave) {
  expect_says(error_of([] { open(stream_request(64, 3, 1)); }), "has 2 send queues, 3 flows need one each");
  expect_says(error_of([] { open(stream_request(64, 1, 3)); }), "has 2 receive queues, 3 are asked for");
  const auto first = open(stream_request(64));
  expect_says(error_of([] { open(stream_request(64)); }), "is another socket's");
}

TEST(AfXdpParts, AFrameTakesTheDescriptorsThatItsChunksNeed) {
  EXPECT_EQ(XdpTx::descriptors(32), 1u);
  EXPECT_EQ(XdpTx::descriptors(4032), 1u);
  EXPECT_EQ(XdpTx::descriptors(4033), 2u);
  EXPECT_EQ(XdpTx::descriptors(8000), 2u);
  EXPECT_EQ(XdpTx::descriptors(8972), 3u);
}

TEST(AfXdpParts, ALinkWithoutInterfacesIsRefused) {
  const auto ring = open_link({.spec = "ring"});
  expect_says(error_of([&] { af_xdp_engine().open(stream_request(64), *ring); }),
              "the link ring has no interface");
}

}  // namespace
}  // namespace doorbell::net::raw
