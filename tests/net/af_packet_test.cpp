// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <thread>
#include <vector>

#include "errors.hpp"
#include "net/raw/engines.hpp"
#include "net/raw/frames.hpp"
#include "net/raw/kernel_socket.hpp"
#include "net/raw/tx_frames.hpp"
#include "net/raw_packets.hpp"
#include "net/raw_veth.hpp"
#include "net/sockets/snmp.hpp"
#include "sanitized.hpp"

namespace doorbell::net::raw {
namespace {

using test::error_of;
using test::expect_says;
using test_packets::Checker;
using test_packets::Sender;
using test_packets::stream_request;

/// Whether a frame gets past the filter: a pair of sockets passes it on as it is.
bool passes(const PortFilter& f, const std::vector<u8>& frame) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  const Descriptor a(ends[0]), b(ends[1]);
  std::vector<sock_filter> steps = socket_filter(f);
  const sock_fprog program = {static_cast<u16>(steps.size()), steps.data()};
  EXPECT_EQ(setsockopt(b.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  // A filter that takes nothing lets the sender's call succeed or fail, as the kernel's version has it.
  static_cast<void>(send(a.get(), frame.data(), frame.size(), MSG_DONTWAIT));
  std::vector<u8> got(frame.size() + 1);
  const ssize_t n = recv(b.get(), got.data(), got.size(), MSG_DONTWAIT);
  EXPECT_TRUE(n < 0 || n == static_cast<ssize_t>(frame.size())) << "cut to " << n;
  return n >= 0;
}

std::vector<u8> frame_to(u16 port, u32 payload = 40) {
  std::vector<u8> f(kUdp4Bytes + payload);
  FlowAddress a;
  a.destination_port = port;
  encode_udp4(a, payload, f.data());
  return f;
}

TEST(SocketFilter, TakesTheFlowsOfItsQueue) {
  for (const u32 queues : {1u, 2u, 3u})
    for (u32 queue = 0; queue < queues; ++queue)
      for (u16 port = 995; port < 1012; ++port) {
        const bool ours = port >= 1000 && port < 1007 && (port - 1000u) % queues == queue;
        ASSERT_EQ(passes({1000, 7, queues, queue}, frame_to(port)), ours)
            << port << " " << queue << "/" << queues;
      }
  EXPECT_TRUE(passes({65535, 1, 1, 0}, frame_to(65535)));
  EXPECT_FALSE(passes({65535, 1, 1, 0}, frame_to(0)));
}

TEST(SocketFilter, TakesOnlyWholeUdpPacketsOverIpv4) {
  const PortFilter f = {1000, 1, 1, 0};
  const std::vector<u8> good = frame_to(1000);
  EXPECT_TRUE(passes(f, good));
  const std::pair<u32, u8> changes[] = {
      {13, 6}, {kEthernetBytes + 9, 6}, {kEthernetBytes + 6, 0x20}, {kEthernetBytes + 7, 1}};
  for (const auto& [at, value] : changes) {
    std::vector<u8> other = good;
    other[at] = value;
    EXPECT_FALSE(passes(f, other)) << at;
  }
  // Options move the ports.
  std::vector<u8> options = good;
  options.insert(options.begin() + kEthernetBytes + 20, 4, 1);
  EXPECT_FALSE(passes(f, options));
  options[kEthernetBytes] = 0x46;
  EXPECT_TRUE(passes(f, options));
  // A frame that ends before its ports is none of ours.
  EXPECT_FALSE(passes(f, {good.begin(), good.begin() + kEthernetBytes + 22}));
}

class AfPacket : public test_packets::OnVeth {
 protected:
  static std::unique_ptr<Stream> open(const StreamRequest& r) { return af_packet_engine().open(r, link()); }
};

TEST_F(AfPacket, AllPacketsArriveOnceAndUnchanged) {
  EXPECT_TRUE(af_packet_engine().status().usable) << af_packet_engine().status().detail;
  for (const u32 bytes : {32u, 64u, 1000u, 8000u, 8972u}) {
    SCOPED_TRACE(bytes);
    const auto s = open(stream_request(bytes));
    test_packets::expect_all_arrive(*s, 600, bytes);
  }
}

TEST_F(AfPacket, EachEncapsulationArrives) {
  test_packets::expect_each_encapsulation_arrives(stream_request(64, 5, 2), open, 300);
}

/// The work of the kernel's IP on a frame would take longer than to receive it.
TEST_F(AfPacket, TheKernelsIpIsDoneWithFramesAtOnce) {
  const auto received = [] {
    u64 packets = 0;
    link().in(End::rx, [&] { packets = sockets::snmp_counters("Ip").at("InReceives"); });
    return packets;
  };
  const u64 before = received();
  test_packets::expect_all_arrive(*open(stream_request(64)), 600, 64);
  // The system's own messages are few.
  EXPECT_LT(received() - before, 300u);
}

/// The kernel's own UDP takes a datagram over IPv6 only if its checksum is right.
TEST_F(AfPacket, TheKernelTakesItsDatagramsOverIpv6) {
  StreamRequest r = stream_request(200);
  r.encapsulation = Encapsulation::udp6;
  FlowAddress a = flow_address(link(), r, 0);
  a.destination_mac = link().mac(End::rx);
  a.destination_ip6 = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};  // all nodes of the link
  a.source_ip6 = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9};
  Descriptor socket;
  link().in(End::rx, [&] {
    socket = Descriptor(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    at.sin6_port = htons(r.port);
    if (socket.get() >= 0 && bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
      socket = Descriptor();
  });
  if (socket.get() < 0) GTEST_SKIP() << "this kernel has no IPv6";
  std::vector<u8> frame(kUdp6Bytes + 200);
  for (u32 i = 0; i < 200; ++i) frame[kUdp6Bytes + i] = static_cast<u8>(i * 5);
  encode(a, 200, frame.data());
  checksum_udp6(frame.data(), 200);
  std::vector<u8> wrong = frame;
  wrong[kUdp6Bytes] ^= 1;
  inject(wrong);
  inject(frame);
  std::vector<u8> got(300);
  ssize_t n = -1;
  const bool came = test::eventually([&] {
    n = recv(socket.get(), got.data(), got.size(), MSG_DONTWAIT);
    return n >= 0;
  });
  ASSERT_TRUE(came);
  ASSERT_EQ(n, 200);
  EXPECT_TRUE(std::equal(got.begin(), got.begin() + 200, frame.begin() + kUdp6Bytes));
  EXPECT_LT(recv(socket.get(), got.data(), got.size(), MSG_DONTWAIT), 0);
}

TEST_F(AfPacket, FlowsReachTheirQueues) {
  for (const auto& [flows, queues] : {std::pair{1u, 2u}, {2u, 1u}, {2u, 2u}, {5u, 3u}}) {
    SCOPED_TRACE(fmt::format("{} x {}", flows, queues));
    const auto s = open(stream_request(200, flows, queues));
    ASSERT_EQ(s->tx.size(), flows);
    ASSERT_EQ(s->rx.size(), queues);
    test_packets::expect_all_arrive(*s, 500, 200, 32);
  }
}

TEST_F(AfPacket, HeaderAndDataLieApartWithSplit) {
  StreamRequest r = stream_request(1000);
  r.split = true;
  const auto s = open(r);
  // More than the slots that packets are copied to.
  test_packets::expect_all_arrive(*s, 4500, 1000, 200);
}

TEST_F(AfPacket, DataGoesToTheGpuWithSplit) {
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

TEST_F(AfPacket, WhatIsHeldStaysUnchangedWhileOthersArrive) {
  // A held packet keeps its block, and on a busy machine a block may have two or three packets: 256 blocks.
  StreamRequest r = stream_request(1000);
  r.socket_bytes = 64u << 20;
  const auto s = open(r);
  const u64 before = interface_drops();
  Sender sender(*s->tx[0], 0);
  std::vector<Burst> held;
  u32 arrived = 0;
  EXPECT_TRUE(test::eventually([&] {
    // Not more at a time than the interface's own queue holds.
    if (sender.sent() - arrived <= 100)
      sender.send(static_cast<u32>(std::min<u64>(50, 600 - sender.sent())), 1000);
    Burst b(40);
    if (s->rx[0]->receive(b) > 0) held.push_back(b), arrived += b.count;
    return arrived == 600;
  }));
  std::vector<u32> seen(600);
  std::vector<u8> want(1000);
  for (Burst& b : held) {
    for (u32 i = 0; i < b.count; ++i) {
      Header h;
      std::memcpy(&h, b.data[i], sizeof h);
      ASSERT_LT(h.sequence(), seen.size());
      ++seen[h.sequence()];
      test_packets::make_payload(0, h.sequence(), 1000, want.data());
      ASSERT_EQ(std::memcmp(b.data[i], want.data(), 1000), 0) << h.sequence();
    }
    s->rx[0]->release(b);
  }
  EXPECT_EQ(std::ranges::count(seen, 1u), 600);
  // The ring is as good as new.
  Checker c(*s->rx[0], 1);
  EXPECT_TRUE(test::eventually([&] {
    sender.send(static_cast<u32>(std::min<u64>(50, 6000 - sender.sent())), 1000);
    c.receive(1000);
    return c.received() + s->rx[0]->drops().ring + interface_drops() - before == 6000 - 600;
  }));
  EXPECT_EQ(c.wrong(), 0u);
}

TEST_F(AfPacket, DropsAreCountedExactlyWhenNobodyReads) {
  StreamRequest r = stream_request(8000);
  r.socket_bytes = 1u << 20;
  const auto s = open(r);
  const u64 before = interface_drops();
  Sender sender(*s->tx[0], 0);
  EXPECT_TRUE(test::eventually([&] {
    sender.send(static_cast<u32>(std::min<u64>(32, 1000 - sender.sent())), 8000);
    return sender.sent() == 1000;
  }));
  Checker c(*s->rx[0], 1);
  Drops d;
  EXPECT_TRUE(test::eventually([&] {
    c.receive(8000);
    d = s->rx[0]->drops();
    return c.received() + d.ring + interface_drops() - before == 1000;
  })) << c.received()
      << " received, " << d.ring << " dropped by the ring";
  EXPECT_GT(c.received(), 0u);
  EXPECT_GT(d.ring, 0u);
  EXPECT_EQ(d.sum(), d.ring);
  EXPECT_EQ(c.wrong(), 0u);
  EXPECT_EQ(c.received(), static_cast<u64>(std::ranges::count(c.of_flow(0), 1u)));
}

TEST_F(AfPacket, ForeignFramesReachNoQueue) {
  const StreamRequest r = stream_request(64, 2, 2);
  const auto s = open(r);
  FlowAddress a = flow_address(link(), r, 0);
  std::vector<u8> frame(kUdp4Bytes + 64);
  // Another port and a fragment stay outside; checksums that are wrong and a payload that is too long get
  // past the filter and are counted.
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
  EXPECT_TRUE(test::eventually([&] {
    first.receive(64);
    second.receive(64);
    return first.received() == 5 && s->rx[0]->unmatched() == 3;
  }));
  EXPECT_EQ(first.wrong(), 0u);
  EXPECT_EQ(second.received(), 0u);
  EXPECT_EQ(s->rx[1]->unmatched(), 0u);
}

TEST_F(AfPacket, ThreadsThatSleepUntilThereIsSomethingToDo) {
  const u32 packets = test::kSanitized ? 1000 : 5000;
  const auto s = open(stream_request(4000));
  const u64 before = interface_drops();
  std::thread sending([&] {
    Sender sender(*s->tx[0], 0);
    EXPECT_TRUE(test::eventually([&] {
      while (sender.send(static_cast<u32>(std::min<u64>(32, packets - sender.sent())), 4000) > 0) {
      }
      if (sender.sent() < packets) s->tx[0]->wait(100'000'000);
      return sender.sent() == packets;
    }));
    EXPECT_EQ(s->tx[0]->completed(), packets);
  });
  Checker c(*s->rx[0], 1);
  EXPECT_TRUE(test::eventually([&] {
    while (c.receive(4000) > 0) {
    }
    if (c.received() < packets) s->rx[0]->wait(100'000'000);
    return c.received() + s->rx[0]->drops().ring + interface_drops() - before == packets;
  }));
  sending.join();
  EXPECT_EQ(c.wrong(), 0u);
  EXPECT_GT(c.received(), 0u);
}

TEST_F(AfPacket, AnInterfaceThatGoesDownBreaksTheSender) {
  const auto s = open(stream_request(64));
  Sender sender(*s->tx[0], 0);
  EXPECT_EQ(sender.send(3, 64), 3u);
  EXPECT_FALSE(s->tx[0]->broken());
  set_up(false);
  EXPECT_EQ(sender.send(3, 64), 0u);
  EXPECT_TRUE(s->tx[0]->broken());
  set_up(true);
}

TEST_F(AfPacket, EndsGoInAnyOrder) {
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
      EXPECT_TRUE(test::eventually([&] { return s->rx[0]->receive(burst) > 0; }));
    }
  }
  const auto s = open(stream_request(1000));
  test_packets::expect_all_arrive(*s, 100, 1000);
}

TEST_F(AfPacket, BlocksWaitForAsLongAsIsAsked) {
  StreamRequest r = stream_request(200);
  r.block_timeout_ms = 7;
  const auto s = open(r);
  EXPECT_EQ(s->facts().at("block_timeout_ms"), 7u);
}

TEST_F(AfPacket, OneEndAlone) {
  StreamRequest r = stream_request(64);
  r.has_rx = false;
  const auto sending = open(r);
  EXPECT_TRUE(sending->rx.empty());
  r.has_rx = true, r.has_tx = false;
  const auto receiving = open(r);
  EXPECT_TRUE(receiving->tx.empty());
  Sender sender(*sending->tx.at(0), 0);
  EXPECT_EQ(sender.send(10, 64), 10u);
  Checker c(*receiving->rx.at(0), 1);
  EXPECT_TRUE(test::eventually([&] { return c.receive(64), c.received() == 10; }));
}

TEST(AfPacketErrors, NameWhatIsMissing) {
  const auto ring = open_link({.spec = "ring"});
  expect_says(error_of([&] { af_packet_engine().open(stream_request(64), *ring); }),
              "the link ring has no interface");
  expect_says(error_of([] { refuse("--engine af_packet", "a packet socket", EPERM); }), "CAP_NET_RAW");
}

}  // namespace
}  // namespace doorbell::net::raw
