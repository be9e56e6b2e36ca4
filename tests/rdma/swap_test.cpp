// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The messages of two processes with NICs about their queue pairs and memory.

#include "rdma/swap.hpp"
#include "exchange/exchange_peers.hpp"

namespace doorbell::rdma {
namespace {

using Json = nlohmann::ordered_json;
using exchange::error_of;
using exchange::Exchange;
using exchange::expect_error;
using exchange::kAnyPort;
using exchange::kHello;
using exchange::kKind;
using exchange::Listener;
using exchange::Pair;
using exchange::RawPeer;

TEST(RdmaSwap, EndpointsAndMemoryAreSwapped) {
  Pair p;
  std::vector<QueuePairAddress> mine(3);
  std::vector<QueuePairAddress> theirs(3);
  for (u32 i = 0; i < 3; ++i) {
    mine[i] = {.qpn = 0x100 + i, .psn = 0xffffff - i, .lid = 3, .mtu = 4096, .gid = {}};
    theirs[i] = {.qpn = 0xabcd00 + i, .psn = i, .lid = 0xffff, .mtu = 256, .gid = {}};
    for (u32 b = 0; b < 16; ++b) theirs[i].gid[b] = static_cast<u8>(b * 17 + i);
  }
  const std::vector<MemoryKey> memory{{0xffff'ffff'ffff'0000, 0xffffffff, 0xffff}};
  std::vector<QueuePairAddress> at_server;
  std::vector<MemoryKey> keys;
  std::thread server([&] {
    at_server = swap(*p.server, theirs);
    keys = swap(*p.server, std::vector<MemoryKey>{{1, 2, 3}});
  });
  const auto at_client = swap(*p.client, mine);
  const auto remote = swap(*p.client, memory);
  server.join();
  ASSERT_EQ(at_client.size(), 3u);
  for (u32 i = 0; i < 3; ++i) {
    EXPECT_EQ(at_client[i].qpn, theirs[i].qpn);
    EXPECT_EQ(at_client[i].psn, theirs[i].psn);
    EXPECT_EQ(at_client[i].lid, theirs[i].lid);
    EXPECT_EQ(at_client[i].mtu, theirs[i].mtu);
    EXPECT_EQ(at_client[i].gid, theirs[i].gid);
    EXPECT_EQ(at_server.at(i).psn, mine[i].psn);
  }
  EXPECT_EQ(remote.at(0).bytes, 3u);
  EXPECT_EQ(keys.at(0).address, memory[0].address);
  EXPECT_EQ(keys.at(0).rkey, memory[0].rkey);
  EXPECT_EQ(keys.at(0).bytes, memory[0].bytes);
}

TEST(RdmaSwap, AnotherNumberOfQueuePairsIsAnError) {
  Pair p;
  std::thread server(
      [&] { expect_error([&] { (void)swap(*p.server, std::vector<QueuePairAddress>(3)); }, "it sent 2"); });
  expect_error([&] { (void)swap(*p.client, std::vector<QueuePairAddress>(2)); },
               "it sent 3 endpoints, this end has 2");
  server.join();
}

TEST(RdmaSwap, BadEndpointsAndMemory) {
  const auto swap_with = [](const std::string& type, const std::string& body) {
    Listener listener(kKind, kAnyPort);
    RawPeer peer(listener.at());
    peer.say_message(kHello);
    peer.say_message("{\"type\":\"" + type + "\",\"body\":" + body + "}");
    return error_of([&] {
      Exchange x = listener.accept(1, 2);
      if (type == "endpoints") (void)swap(x, std::vector<QueuePairAddress>(1));
      else (void)swap(x, std::vector<MemoryKey>(1));
    });
  };
  const auto endpoint = [&](const std::string& changed) {
    Json e = {{"qpn", 17}, {"psn", 5}, {"lid", 0}, {"mtu", 1024}, {"gid", std::string(32, '0')}};
    if (!changed.empty()) e.update(Json::parse(changed));
    return swap_with("endpoints", Json::array({e}).dump());
  };
  EXPECT_EQ(endpoint(""), "");
  EXPECT_NE(endpoint(R"({"qpn":16777216})").find("'qpn'"), std::string::npos);
  EXPECT_NE(endpoint(R"({"psn":-1})").find("'psn'"), std::string::npos);
  EXPECT_NE(endpoint(R"({"lid":65536})").find("'lid'"), std::string::npos);
  for (const char* mtu : {R"({"mtu":0})", R"({"mtu":1000})", R"({"mtu":8192})", R"({"mtu":"4096"})"})
    EXPECT_NE(endpoint(mtu).find("'mtu'"), std::string::npos) << mtu;
  for (const char* gid : {R"({"gid":""})", R"({"gid":7})", R"({"gid":"0000000000000000000000000000000g"})"})
    EXPECT_NE(endpoint(gid).find("'gid'"), std::string::npos) << gid;
  EXPECT_NE(swap_with("endpoints", "{}").find("it sent 0 endpoints"), std::string::npos);
  EXPECT_NE(swap_with("endpoints", "[1]").find("'qpn'"), std::string::npos);
  EXPECT_EQ(swap_with("memory", R"([{"address":1,"rkey":2,"bytes":3}])"), "");
  EXPECT_NE(swap_with("memory", R"([{"address":16,"rkey":2,"bytes":18446744073709551615}])").find("'bytes'"),
            std::string::npos);
  EXPECT_NE(swap_with("memory", R"([{"address":16,"rkey":4294967296,"bytes":1}])").find("'rkey'"),
            std::string::npos);
}

}  // namespace
}  // namespace doorbell::rdma
