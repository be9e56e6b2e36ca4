// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>

#include <sstream>
#include <thread>

#include "errors.hpp"
#include "net/local_link.hpp"
#include "net/sockets/drop_counter.hpp"
#include "net/sockets/snmp.hpp"
#include "net/sockets/socket.hpp"
#include "net/sockets/sockets.hpp"
#include "net/sockets/udp_rx.hpp"
#include "net/sockets/udp_tx.hpp"

namespace doorbell::net {
namespace {

using namespace test;
using doorbell::test::error_of;
using doorbell::test::eventually;
using doorbell::test::expect_says;
using sockets::DropCounter;

u16 rx_port(Stream& s, std::size_t flow = 0) {
  return s.facts()["ports"][flow].get<u16>();
}

struct Size {
  u32 bytes;
  u32 packets;
};

/// Of the whole network namespace, so those of a test beside this one are among them.
u64 broken_datagrams() {
  return sockets::snmp_counters("Udp")["InCsumErrors"];
}

class UdpSizes : public ::testing::TestWithParam<std::tuple<Size, bool>> {};

TEST_P(UdpSizes, ArriveWhole) {
  const auto [size, segmentation] = GetParam();
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = size.bytes;
  r.segmentation = segmentation;
  r.socket_bytes = 4u << 20;
  const u64 broken_before = broken_datagrams();
  const auto stream = udp_stream().open(r, link);
  ASSERT_EQ(stream->tx.size(), 1u);
  ASSERT_EQ(stream->rx.size(), 1u);
  TxQueue& tx = *stream->tx[0];
  RxQueue& rx = *stream->rx[0];
  const TxSlots slots = tx.slots();
  EXPECT_EQ(slots.count, kTemplates);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(slots.base) % 32, 0u);
  EXPECT_EQ(slots.stride % 32, 0u);
  EXPECT_GE(slots.stride, size.bytes);

  Burst burst(r.burst);
  for (u64 first = 0; first < size.packets; first += 30) {
    const u32 count = static_cast<u32>(std::min<u64>(30, size.packets - first));
    for (u32 i = 0; i < count; ++i) write_packet(slots.payload(first + i), 0, first + i, size.bytes);
    ASSERT_TRUE(send_all(tx, first, count, size.bytes));
    EXPECT_EQ(tx.completed(), first + count);
    ASSERT_TRUE(receive_all(rx, burst, 0, first, count, size.bytes));
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_TRUE(eventually([&] { return tx.finish(); }));
  EXPECT_FALSE(tx.broken());
  EXPECT_EQ(rx.drops().sum(), 0u);
  const u64 unmatched = rx.unmatched();
  EXPECT_LE(unmatched, broken_datagrams() - broken_before);
  EXPECT_EQ(rx.receive(burst), 0u);
  const auto facts = stream->facts();
  EXPECT_EQ(facts["receive"]["too_long"], 0);
  if (!segmentation) {
    EXPECT_EQ(facts["send"]["segments_per_datagram"], 1);
    EXPECT_EQ(facts["receive"]["datagrams"], size.packets);
  } else if (facts["send"]["segments_per_datagram"] > 1 && size.bytes < 30000 &&
             facts["receive"]["coalescing"]) {
    EXPECT_LT(facts["receive"]["datagrams"], size.packets);
  }
}

INSTANTIATE_TEST_SUITE_P(Udp, UdpSizes,
                         ::testing::Combine(::testing::Values(Size{32, 3000}, Size{33, 200}, Size{64, 3000},
                                                              Size{1000, 1500}, Size{8000, 300},
                                                              Size{65507, 40}),
                                            ::testing::Bool()));

TEST(Udp, BurstsSmallerThanADatagram) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 64;
  r.burst = 5;
  const auto stream = udp_stream().open(r, link);
  fill(*stream->tx[0], 0, 400, 64);
  std::vector<Burst> held;
  for (u32 i = 0; i < 4; ++i) held.emplace_back(r.burst);
  u64 sent = 0, got = 0, released = 0;
  std::vector<u64> first(held.size());
  // Four bursts are always held, and what they point to stays as it was.
  ASSERT_TRUE(eventually([&] {
    if (sent < 400 && sent - got < 100) sent += stream->tx[0]->send(sent, 20, 64);
    Burst& next = held[got / 5 % held.size()];
    if (got - released == 20) {
      for (u32 i = 0; i < next.count; ++i)
        EXPECT_TRUE(holds(next.data[i], next.length[i], 0, released + i, 64));
      released += next.count;
      stream->rx[0]->release(next);
    }
    // Whole bursts, so that their turn can be told by the count.
    if (sent - got < 5) return false;
    EXPECT_EQ(stream->rx[0]->receive(next), 5u);
    got += next.count;
    return got == 400 || HasFailure();
  }));
}

TEST(Udp, FlowsArriveAtTheirQueues) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 100;
  r.flows = 4;
  r.rx_queues = 2;
  const auto stream = udp_stream().open(r, link);
  ASSERT_EQ(stream->tx.size(), 4u);
  ASSERT_EQ(stream->rx.size(), 2u);
  for (u16 f = 0; f < 4; ++f) {
    fill(*stream->tx[f], f, 50, 100);
    ASSERT_TRUE(send_all(*stream->tx[f], 0, 50, 100));
  }
  for (u16 q = 0; q < 2; ++q) {
    Burst burst(r.burst);
    u64 next[4] = {};
    ASSERT_TRUE(eventually([&] {
      if (stream->rx[q]->receive(burst) == 0) stream->rx[q]->wait(10'000'000);
      EXPECT_EQ(burst.queue, q);
      for (u32 i = 0; i < burst.count; ++i) {
        Header h;
        std::memcpy(&h, burst.data[i], sizeof h);
        EXPECT_EQ(h.stream() % 2, q);
        EXPECT_TRUE(holds(burst.data[i], burst.length[i], h.stream(), next[h.stream() & 3]++, 100));
      }
      stream->rx[q]->release(burst);
      return next[q] + next[q + 2] == 100 || HasFailure();
    }));
  }
}

TEST(Udp, TwoThreads) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 1000;
  r.socket_bytes = 4u << 20;
  const auto stream = udp_stream().open(r, link);
  constexpr u32 kPackets = 1000;
  fill(*stream->tx[0], 0, kPackets, r.payload_bytes);
  std::thread sender([&] {
    for (u32 n = 0; n < kPackets; n += 50) EXPECT_TRUE(send_all(*stream->tx[0], n, 50, r.payload_bytes));
  });
  Burst burst(r.burst);
  EXPECT_TRUE(receive_all(*stream->rx[0], burst, 0, 0, kPackets, r.payload_bytes));
  sender.join();
}

TEST(Udp, FragmentsAreRefused) {
  LocalLink link(1500);
  EXPECT_EQ(udp_stream().max_payload(link), 1472u);
  EXPECT_EQ(udp_stream().max_payload(LocalLink(65536)), 65507u);
  StreamRequest r;
  r.payload_bytes = 1473;
  const std::string said = error_of([&] { udp_stream().open(r, link); });
  expect_says(said, "1473");
  expect_says(said, "32 .. 1472");
  expect_says(said, "fragments");
}

TEST(Udp, RequestsThatSocketsCannotMeet) {
  LocalLink link;
  const auto says = [&](auto change, const std::string& part) {
    StreamRequest r;
    change(r);
    expect_says(error_of([&] { udp_stream().open(r, link); }), part);
    expect_says(error_of([&] { tcp_stream().open(r, link); }), part);
  };
  says([](StreamRequest& r) { r.place = Place::gpu; }, "host memory");
  says([](StreamRequest& r) { r.split = true; }, "split");
  says([](StreamRequest& r) { r.rx_queues = 2; }, "1 flows");
  says([](StreamRequest& r) { r.payload_bytes = 31; }, "32 ..");
  says([](StreamRequest& r) { r.port = 65535, r.flows = 2; }, "65535");
  says([](StreamRequest& r) { r.port = 0; }, "65535");
  says([](StreamRequest& r) { r.burst = 0; }, "at least 1");
}

TEST(Udp, AConnectedReceiverRefusesOthers) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 100;
  const auto stream = udp_stream().open(r, link);
  const Descriptor other = other_socket(SOCK_DGRAM);
  connect_to(other.get(), rx_port(*stream));
  const std::vector<u8> alien(100, 0x5a);
  ::send(other.get(), alien.data(), alien.size(), 0);
  fill(*stream->tx[0], 0, 10, 100);
  ASSERT_TRUE(send_all(*stream->tx[0], 0, 10, 100));
  Burst burst(r.burst);
  EXPECT_TRUE(receive_all(*stream->rx[0], burst, 0, 0, 10, 100));
  EXPECT_EQ(stream->rx[0]->receive(burst), 0u);
}

TEST(Udp, AnUnconnectedReceiverMeetsOthers) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 100;
  r.has_tx = false;
  r.segmentation = false;
  const Descriptor free = other_socket(SOCK_DGRAM, 0);
  r.port = port_of(free.get());
  // With one end in this process, another port would not be found by the other end.
  expect_says(error_of([&] { udp_stream().open(r, link); }), std::to_string(r.port));
  std::unique_ptr<Stream> stream;
  ASSERT_TRUE(eventually([&] {
    const u16 port = port_of(other_socket(SOCK_DGRAM, 0).get());
    r.port = port;
    try {
      stream = udp_stream().open(r, link);
    } catch (const Error&) {  // another test has it by now
    }
    return stream != nullptr;
  }));
  EXPECT_TRUE(stream->tx.empty());
  RxQueue& rx = *stream->rx[0];
  const Descriptor other = other_socket(SOCK_DGRAM);
  connect_to(other.get(), r.port);
  const std::vector<u8> bytes(300, 0x5a);
  const auto send = [&](std::size_t n) { ASSERT_EQ(::send(other.get(), bytes.data(), n, 0), ssize_t(n)); };
  Burst burst(r.burst);
  // More of them than there are buffers. Too long ones are in no burst that could give them back; what is too
  // short for a header is a packet, of which the receiver makes an alien, as of a frame.
  for (u64 i = 0; i < 300; ++i) {
    send(129);
    ASSERT_TRUE(eventually([&] {
      EXPECT_EQ(rx.receive(burst), 0u);
      return stream->facts()["receive"]["too_long"] == i + 1;
    }));
    for (const u32 bytes_sent : {0u, 31u}) {
      send(bytes_sent);
      ASSERT_TRUE(eventually([&] { return rx.receive(burst) == 1; }));
      EXPECT_EQ(burst.length[0], bytes_sent);
      rx.release(burst);
    }
  }
  send(100);  // no packet of the stream, which its header tells
  ASSERT_TRUE(eventually([&] { return rx.receive(burst) == 1; }));
  EXPECT_EQ(burst.length[0], 100u);
  EXPECT_EQ(burst.data[0][0], 0x5a);
  rx.release(burst);
  EXPECT_EQ(stream->facts()["receive"]["too_long"], 300);
  EXPECT_GE(rx.unmatched(), 300u);
}

/// A datagram that does not fit into the stream is none of its packets, in whatever it is received.
TEST(Udp, LongerAndBrokenDatagramsAreUnmatched) {
  for (const bool coalesce : {false, true}) {
    SCOPED_TRACE(coalesce);
    LocalLink link;
    StreamRequest r;
    r.payload_bytes = 100;
    r.segmentation = coalesce;
    const auto stream = udp_stream().open(r, link);
    const u16 port = rx_port(*stream);
    const int sender = dynamic_cast<sockets::UdpTxQueue&>(*stream->tx[0]).fd();
    const u16 from = ntohs(sockets::local_address(sender).sin_port);
    // As the sender: a raw socket says where a datagram comes from, and what its checksum is.
    const Descriptor raw(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_UDP));
    if (raw.get() < 0) GTEST_SKIP() << "raw sockets are root's";
    const auto send = [&](u16 payload, u16 checksum) {
      std::vector<u8> d(8u + payload, 0x5a);
      const auto put = [&](std::size_t at, u32 v) {
        d[at] = static_cast<u8>(v >> 8), d[at + 1] = static_cast<u8>(v);
      };
      put(0, from), put(2, port), put(4, 8u + payload), put(6, checksum);
      const sockaddr_in to = sockets::address_of("127.0.0.1", 0);
      ASSERT_EQ(::sendto(raw.get(), d.data(), d.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
                static_cast<ssize_t>(d.size()));
    };
    send(101, 0);
    send(300, 0);
    send(100, 0x1234);
    Burst burst(r.burst);
    EXPECT_TRUE(eventually([&] {
      EXPECT_EQ(stream->rx[0]->receive(burst), 0u);
      return stream->rx[0]->unmatched() >= 3;  // others' broken datagrams are among them
    })) << stream->rx[0]->unmatched();
    EXPECT_EQ(stream->facts()["receive"]["too_long"], 2);
  }
}

TEST(Udp, TakenPortsArePassedOver) {
  LocalLink link;
  const Descriptor taken = other_socket(SOCK_DGRAM, 0);
  StreamRequest r;
  r.payload_bytes = 64;
  r.flows = 2;
  r.port = port_of(taken.get());
  if (r.port > 65000) GTEST_SKIP() << "the kernel has given a port next to the last";
  const auto stream = udp_stream().open(r, link);
  EXPECT_GT(rx_port(*stream, 0), r.port);
  EXPECT_GT(rx_port(*stream, 1), rx_port(*stream, 0));
}

class UdpDrops : public ::testing::TestWithParam<bool> {};

TEST_P(UdpDrops, AreCountedExactly) {
  LocalLink link;
  StreamRequest r;
  r.payload_bytes = 1000;
  r.segmentation = GetParam();
  r.socket_bytes = 100'000;
  const auto stream = udp_stream().open(r, link);
  // Without permission to load a BPF program, only bounds are known for coalesced datagrams.
  const bool exact = stream->facts()["receive"]["drops_counted_in"] == "packets";
  EXPECT_TRUE(exact || GetParam());
  RxQueue& rx = *stream->rx[0];
  fill(*stream->tx[0], 0, kTemplates, r.payload_bytes);
  Burst burst(r.burst);
  u64 sent = 0, got = 0;
  const auto drain = [&] {
    while (rx.receive(burst) > 0) {
      got += burst.count;
      rx.release(burst);
    }
  };
  // Nobody reads, so most of it finds no room; the counter must be right although nothing follows, and also
  // when later packets tell of the same drops.
  for (u32 round = 0; round < 3; ++round) {
    for (u32 i = 0; i < 20; ++i, sent += 77) ASSERT_TRUE(send_all(*stream->tx[0], sent, 77, 1000));
    drain();
    const Drops drops = rx.drops();
    EXPECT_GT(drops.socket, 0u);
    SCOPED_TRACE(round);
    if (exact) {
      EXPECT_EQ(sent, got + drops.socket);
      EXPECT_EQ(drops.socket_most, 0u);
    } else {
      EXPECT_GE(sent, got + drops.socket);
      EXPECT_LE(sent, got + drops.socket_most);
    }
  }
  ASSERT_LT(got, sent);
}

INSTANTIATE_TEST_SUITE_P(Udp, UdpDrops, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "Segmentation" : "Plain"; });

TEST(UdpSender, NobodyListens) {
  Descriptor to = other_socket(SOCK_DGRAM, 0);
  const u16 port = port_of(to.get());
  Descriptor from = other_socket(SOCK_DGRAM, 0);
  connect_to(from.get(), port);
  sockets::UdpTxQueue tx(std::move(from), Region(Place::pageable, 64 * kTemplates), 64, 1);
  to.reset();
  fill(tx, 0, 1000, 64);
  u64 sent = 0;
  // Each datagram is answered with an error, which the next call would report in place of sending.
  for (u32 i = 0; i < 20; ++i) {
    sent += tx.send(sent, 10, 64);
    tx.wait(1'000'000);
  }
  EXPECT_GT(tx.counts().reports, 0u);
  EXPECT_FALSE(tx.broken());
  EXPECT_EQ(tx.completed(), sent);
  to = other_socket(SOCK_DGRAM, port);
  ASSERT_EQ(::fcntl(to.get(), F_SETFL, O_NONBLOCK), 0);
  const u64 before = sent;
  while (sent < before + 100) {
    const u32 accepted = tx.send(sent, static_cast<u32>(before + 100 - sent), 64);
    sent += accepted;
  }
  std::vector<u8> bytes(100);
  for (u64 n = before; n < sent; ++n) {
    ASSERT_EQ(::recv(to.get(), bytes.data(), bytes.size(), 0), 64);
    EXPECT_TRUE(holds(bytes.data(), 64, 0, n, 64));
  }
  EXPECT_LT(::recv(to.get(), bytes.data(), bytes.size(), 0), 0);
}

TEST(UdpSender, NoRoom) {
  // A socket of another family gives the send buffer's limit a meaning: what it holds stays there.
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair), 0);
  const Descriptor to(pair[1]);
  sockets::UdpTxQueue tx(Descriptor(pair[0]), Region(Place::pageable, 1024 * kTemplates), 1000, 1);
  fill(tx, 0, kTemplates, 1000);
  u64 sent = 0;
  while (const u32 n = tx.send(sent, 64, 1000)) sent += n;
  EXPECT_GT(sent, 0u);
  EXPECT_FALSE(tx.broken());
  EXPECT_EQ(tx.completed(), sent);
  std::vector<u8> bytes(2000);
  u64 got = 0;
  while (::recv(to.get(), bytes.data(), bytes.size(), 0) == 1000) ++got;
  EXPECT_EQ(got, sent);
  tx.wait(1'000'000'000);
  EXPECT_GT(tx.send(sent, 1, 1000), 0u);
}

TEST(DropCounter, Wraps) {
  DropCounter c;
  c.update(0xfffffff0u / 2);
  c.update(0xfffffff0u);
  EXPECT_EQ(c.total(), 0xfffffff0u);
  c.update(0x10);
  EXPECT_EQ(c.total(), 0x100000010u);
  c.update(0xfffffff8u);  // older than the one before
  EXPECT_EQ(c.total(), 0x100000010u);
  c.update(0x10);
  EXPECT_EQ(c.total(), 0x100000010u);
  c.update(0x11);
  EXPECT_EQ(c.total(), 0x100000011u);
}

TEST(Snmp, CountersByName) {
  std::istringstream text(
      "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
      "Udp: InDatagrams NoPorts InErrors\nUdp: 600 -3 18446744073709551615\nUdpLite: InErrors\nUdpLite: 9\n");
  const auto counters = sockets::snmp_counters(text, "Udp");
  EXPECT_EQ(counters.size(), 2u);
  EXPECT_EQ(counters.at("InDatagrams"), 600u);
  EXPECT_EQ(counters.at("InErrors"), ~u64{0});
  std::istringstream cut("Udp: InDatagrams\n");
  EXPECT_TRUE(sockets::snmp_counters(cut, "Udp").empty());
  EXPECT_TRUE(sockets::snmp_counters("Udp").contains("RcvbufErrors"));
}

}  // namespace
}  // namespace doorbell::net
