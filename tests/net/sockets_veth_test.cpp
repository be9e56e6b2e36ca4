// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Sockets at the two ends of a veth pair, each in a network namespace of its own.

#include <gtest/gtest.h>

#include <algorithm>

#include "net/link.hpp"
#include "net/links/namespaces.hpp"
#include "net/local_link.hpp"
#include "net/sockets/sockets.hpp"

namespace doorbell::net {
namespace {

using namespace test;
using doorbell::test::eventually;

class SocketsOverVeth : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const BackendStatus s = namespaces_status(); !s.usable)
      GTEST_SKIP() << "no veth pair can be made here: " << s.detail;
    enter_user_namespace_if_needed();
    link = open_link({.spec = GetParam()});
  }
  std::unique_ptr<Link> link;
};

TEST_P(SocketsOverVeth, UdpArrivesWhole) {
  EXPECT_EQ(udp_stream().max_payload(*link), 8972u);
  for (const u32 bytes : {32u, 1000u, 8000u, 8972u})
    for (const bool segmentation : {false, true}) {
      SCOPED_TRACE(testing::Message() << bytes << " bytes, segmentation " << segmentation);
      StreamRequest r;
      r.payload_bytes = bytes;
      r.segmentation = segmentation;
      r.socket_bytes = 4u << 20;
      const auto stream = udp_stream().open(r, *link);
      EXPECT_EQ(stream->facts()["ports"][0], r.port) << "nobody else has a port in a namespace of one's own";
      fill(*stream->tx[0], 0, 300, bytes);
      Burst burst(r.burst);
      for (u32 first = 0; first < 300; first += 30) {
        ASSERT_TRUE(send_all(*stream->tx[0], first, 30, bytes));
        ASSERT_TRUE(receive_all(*stream->rx[0], burst, 0, first, 30, bytes));
      }
      EXPECT_TRUE(eventually([&] { return stream->tx[0]->finish(); }));
      EXPECT_FALSE(stream->tx[0]->broken());
      EXPECT_EQ(stream->rx[0]->drops().sum(), 0u);
      const auto facts = stream->facts()["receive"];
      EXPECT_EQ(facts["namespace_receive_errors"], 0);
      EXPECT_EQ(facts["namespace_receive_buffer_errors"], 0);
    }
}

TEST_P(SocketsOverVeth, UdpDropsAreCountedExactly) {
  for (const bool segmentation : {false, true}) {
    StreamRequest r;
    r.payload_bytes = 1000;
    r.segmentation = segmentation;
    r.socket_bytes = 100'000;
    const auto stream = udp_stream().open(r, *link);
    RxQueue& rx = *stream->rx[0];
    // Without permission to load a BPF program, only bounds are known for coalesced datagrams.
    const bool exact = stream->facts()["receive"]["drops_counted_in"] == "packets";
    EXPECT_TRUE(exact || segmentation);
    fill(*stream->tx[0], 0, kTemplates, 1000);
    u64 sent = 0, got = 0;
    for (u32 i = 0; i < 20; ++i, sent += 77) ASSERT_TRUE(send_all(*stream->tx[0], sent, 77, 1000));
    Burst burst(r.burst);
    // The kernel may still carry what was sent last, on another core.
    EXPECT_TRUE(eventually([&] {
      const u32 more = rx.receive(burst);
      got += more;
      rx.release(burst);
      if (more > 0) return false;
      const Drops drops = rx.drops();
      return exact ? got + drops.socket == sent
                   : got + drops.socket <= sent && got + drops.socket_most >= sent;
    })) << sent
        << " sent, " << got << " received, " << rx.drops().socket << " dropped";
    EXPECT_GT(rx.drops().socket, 0u);
    EXPECT_EQ(rx.receive(burst), 0u);
    if (exact) {
      EXPECT_EQ(rx.drops().socket_most, 0u);
    }
    EXPECT_GT(stream->facts()["receive"]["namespace_receive_buffer_errors"], 0);
  }
}

TEST_P(SocketsOverVeth, TcpArrivesWhole) {
  for (const u32 bytes : {32u, 8000u, 100'000u}) {
    SCOPED_TRACE(bytes);
    StreamRequest r;
    r.payload_bytes = bytes;
    const auto stream = tcp_stream().open(r, *link);
    TxQueue& tx = *stream->tx[0];
    RxQueue& rx = *stream->rx[0];
    fill(tx, 0, 200, bytes);
    Burst burst(r.burst);
    u32 sent = 0, got = 0;
    bool finished = false;
    EXPECT_TRUE(eventually([&] {
      sent += tx.send(sent, std::min(10u, 200 - sent), bytes);
      if (sent == 200) finished = tx.finish();
      rx.receive(burst);
      for (u32 i = 0; i < burst.count; ++i)
        EXPECT_TRUE(holds(burst.data[i], burst.length[i], 0, got + i, bytes));
      got += burst.count;
      rx.release(burst);
      return finished && rx.ended();
    }));
    EXPECT_EQ(got, 200u);
    EXPECT_FALSE(tx.broken());
    EXPECT_EQ(rx.unmatched(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Links, SocketsOverVeth, ::testing::Values("veth", "veth:gso=off"),
                         [](const auto& i) { return std::string(i.param).size() > 4 ? "Split" : "Whole"; });

}  // namespace
}  // namespace doorbell::net
