// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Exchange over the loopback interface: two peers that agree, and peers that misbehave.

#include <arpa/inet.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <functional>
#include <optional>
#include <thread>

#include "errors.hpp"
#include "rdma/exchange.hpp"
#include "system/clock.hpp"

namespace doorbell::rdma {
namespace {

using Json = nlohmann::ordered_json;

const SocketName kAnyPort{"127.0.0.1", 0};

/// What `call` throws, its hint behind it; "" when it throws nothing.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return std::string(e.what()) + " / " + e.hint();
  }
  return "";
}

void expect_error(const std::function<void()>& call, const std::string& part) {
  test::expect_says(error_of(call), part);
}

/// A server and a client that have said hello.
struct Pair {
  std::optional<Exchange> server;
  std::optional<Exchange> client;

  explicit Pair(double limit_s = 5) {
    Listener listener(kAnyPort);
    std::thread other([&] { client.emplace(Exchange::connect(listener.at(), limit_s)); });
    server.emplace(listener.accept(5, limit_s));
    other.join();
  }
};

/// A peer that speaks only what a test makes it say.
class RawPeer {
 public:
  explicit RawPeer(const SocketName& to) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(to.port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  }
  void say(const std::string& bytes) {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void say_message(const std::string& text) { say(frame(text)); }
  void close() { socket_.reset(); }
  static std::string frame(const std::string& text) {
    const std::size_t n = text.size();
    std::string all = "dbrx";
    for (int shift = 24; shift >= 0; shift -= 8) all += static_cast<char>(n >> shift & 0xff);
    return all + text;
  }

 private:
  Descriptor socket_;
};

/// A hello of this version of the protocol, or of another, with more fields in `rest`.
std::string hello(const std::string& rest, u32 version = Exchange::kVersion) {
  return R"({"type":"hello","body":{"version":)" + std::to_string(version) + rest + "}}";
}
const std::string kHello = hello(R"(,"nonce":7,"server":false)");

/// A server whose client `act`s; what accepting it, or the first receive of "options" after it, throws.
std::string served(const std::function<void(RawPeer&)>& act, double limit_s = 2) {
  Listener listener(kAnyPort);
  RawPeer peer(listener.at());
  act(peer);
  return error_of([&] {
    Exchange x = listener.accept(1, limit_s);
    (void)x.receive("options");
  });
}

void expect_served(const std::function<void(RawPeer&)>& act, const std::string& part) {
  test::expect_says(served(act), part);
}

TEST(RdmaExchange, MessagesGoBothWays) {
  Pair p;
  EXPECT_TRUE(p.server->server());
  EXPECT_FALSE(p.client->server());
  EXPECT_TRUE(p.client->peer().starts_with("127.0.0.1:"));
  p.client->send("options", {{"size", 4096}, {"op", "write"}});
  EXPECT_EQ(p.server->receive("options")["size"], 4096);
  std::string large(3'000'000, 'x');  // more than the sockets hold
  std::thread sender([&] { p.server->send("report", {{"text", large}}); });
  EXPECT_EQ(p.client->receive("report")["text"], large);
  sender.join();
}

TEST(RdmaExchange, EndpointsAndMemoryAreSwapped) {
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
    at_server = p.server->swap(theirs);
    keys = p.server->swap(std::vector<MemoryKey>{{1, 2, 3}});
  });
  const auto at_client = p.client->swap(mine);
  const auto remote = p.client->swap(memory);
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

TEST(RdmaExchange, AnotherNumberOfQueuePairsIsAnError) {
  Pair p;
  std::thread server(
      [&] { expect_error([&] { (void)p.server->swap(std::vector<QueuePairAddress>(3)); }, "it sent 2"); });
  expect_error([&] { (void)p.client->swap(std::vector<QueuePairAddress>(2)); },
               "it sent 3 endpoints, this end has 2");
  server.join();
}

TEST(RdmaExchange, BarriersMeetAndMismatchesAreTold) {
  Pair p;
  std::thread server([&] {
    p.server->barrier("start");
    expect_error([&] { p.server->barrier("stop"); }, "it is at barrier \"end\", this end at \"stop\"");
  });
  p.client->barrier("start");
  expect_error([&] { p.client->barrier("end"); }, "\"stop\"");
  server.join();
}

TEST(RdmaExchange, AFailureIsToldToTheOtherEnd) {
  Pair p;
  p.client->send("options", Json::object());  // unread when the server goes
  p.server->fail("no such device");
  p.server.reset();
  expect_error([&] { (void)p.client->receive("endpoints"); }, "it has failed: no such device");
}

TEST(RdmaExchange, WhatTheOtherEndSaysIsNoCommandToTheTerminal) {
  Pair p;
  p.server->fail(
      "gone\x1b[2J\nand \xc2\x9b"
      "1m \xc3\xa9");
  expect_error([&] { (void)p.client->receive("endpoints"); }, "it has failed: gone?[2J?and ??1m \xc3\xa9");
  Pair q;
  q.server->send("\x1b[2J", Json::object());
  expect_error([&] { (void)q.client->receive("endpoints"); }, "it sent '?[2J' where");
}

TEST(RdmaExchange, SilenceEndsWithTheDeadline) {
  Pair p(0.2);
  const u64 begin = wall_ns();
  expect_error([&] { (void)p.server->receive("options"); }, "it does not send 'options' in time");
  expect_error([&] { (void)p.server->receive("options", 0.1); }, "in time");
  const double seconds = static_cast<double>(wall_ns() - begin) * 1e-9;
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 3);
}

TEST(RdmaExchange, APeerThatReadsNothingEndsWithTheDeadline) {
  Pair p(0.3);
  const std::string large(4'000'000, 'x');
  expect_error(
      [&] {
        for (int i = 0; i < 20; ++i) p.server->send("report", large);
      },
      "it does not take 'report' in time");
}

TEST(RdmaExchange, AnEarlyEndIsTold) {
  Pair p;
  p.client.reset();
  expect_error([&] { (void)p.server->receive("options"); },
               "it has closed the connection, 'options' was expected");
  // The first message after it may still be taken by the kernel.
  expect_error(
      [&] {
        for (int i = 0; i < 100; ++i) p.server->send("report", "x");
      },
      "it does not take 'report'");
}

TEST(RdmaExchange, WaitsEndWithAStop) {
  measure::StopFlag stop;
  Listener listener(kAnyPort);
  std::thread asks([&] { stop.request(SIGINT); });
  expect_error([&] { (void)listener.accept(30, 1, &stop); }, "interrupted");
  asks.join();
}

TEST(RdmaExchange, NobodyComes) {
  Listener listener(kAnyPort);
  expect_error([&] { (void)listener.accept(0.1, 1); }, "nobody has connected in time");
}

TEST(RdmaExchange, NobodyListens) {
  SocketName gone;
  { gone = Listener(kAnyPort).at(); }
  expect_error([&] { (void)Exchange::connect(gone, 2); }, "Connection refused");
  expect_error([&] { (void)Exchange::connect(gone, 2); }, "--listen");
  // With an empty label it is no name: no server is asked for it.
  expect_error([&] { (void)Exchange::connect({"no..host", 1}, 2); }, "--connect no..host:1");
}

TEST(RdmaExchange, ThePortIsTaken) {
  Listener listener(kAnyPort);
  expect_error([&] { Listener second(listener.at()); }, "Address already in use");
}

TEST(RdmaExchange, TwoServersAndOneselfAreTold) {
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"nonce":7,"server":true)")); },
                "it is not the other role");
}

TEST(RdmaExchange, AnotherVersion) {
  expect_served(
      [](RawPeer& p) { p.say_message(hello(R"(,"nonce":7,"server":false)", Exchange::kVersion + 1)); },
      fmt::format("it speaks version {} of doorbell's protocol, this end version {}", Exchange::kVersion + 1,
                  Exchange::kVersion));
}

TEST(RdmaExchange, Garbage) {
  expect_served([](RawPeer& p) { p.say("GET / HTTP/1.1\r\n\r\n"); }, "it does not speak doorbell's protocol");
  expect_served([](RawPeer& p) { p.say(std::string(64, '\0')); }, "it does not speak doorbell's protocol");
  expect_served([](RawPeer& p) { p.say(std::string("dbrx\xff\xff\xff\xff", 8)); }, "4294967295 bytes");
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"type":1,"body":2})", R"({"type":"hello"})", "\xff\xfe"})
    expect_served([&](RawPeer& p) { p.say_message(text); }, "its message is none of doorbell's");
  for (const char* body : {"1", "{}", R"({"version":"1"})", R"({"version":-1})", R"({"version":1.5})"})
    expect_served([&](RawPeer& p) { p.say_message(std::string(R"({"type":"hello","body":)") + body + "}"); },
                  "no valid 'version'");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"nonce":7)")); }, "whether it is the server");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"server":false)")); }, "no valid 'nonce'");
  expect_served([](RawPeer& p) { p.say_message(R"({"type":"endpoints","body":[]})"); },
                "it sent 'endpoints' where 'hello' was expected");
}

TEST(RdmaExchange, DeepNestingIsOnlyGarbage) {
  expect_served([](RawPeer& p) { p.say_message(std::string(200'000, '[')); },
                "its message is none of doorbell's");
}

TEST(RdmaExchange, HalfAMessage) {
  expect_served(
      [](RawPeer& p) {
        p.say("dbr");
        p.close();
      },
      "it has closed the connection, 'hello' was expected");
  expect_served(
      [](RawPeer& p) {
        p.say(RawPeer::frame(kHello).substr(0, 20));
        p.close();
      },
      "it has closed the connection");
  EXPECT_NE(served([](RawPeer& p) { p.say(RawPeer::frame(kHello).substr(0, 20)); }, 0.1).find("in time"),
            std::string::npos);
}

TEST(RdmaExchange, BadEndpointsAndMemory) {
  const auto swap_with = [](const std::string& type, const std::string& body) {
    Listener listener(kAnyPort);
    RawPeer peer(listener.at());
    peer.say_message(kHello);
    peer.say_message("{\"type\":\"" + type + "\",\"body\":" + body + "}");
    return error_of([&] {
      Exchange x = listener.accept(1, 2);
      if (type == "endpoints") (void)x.swap(std::vector<QueuePairAddress>(1));
      else (void)x.swap(std::vector<MemoryKey>(1));
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

TEST(RdmaExchange, NamesOfSockets) {
  EXPECT_EQ(parse_connect("node7").text(), "node7:18515");
  EXPECT_EQ(parse_connect("node7:4").text(), "node7:4");
  EXPECT_EQ(parse_connect("[fe80::1%eth0]").text(), "[fe80::1%eth0]:18515");
  EXPECT_EQ(parse_connect("[::1]:99").text(), "[::1]:99");
  EXPECT_EQ(parse_listen("18515").text(), "18515");
  EXPECT_EQ(parse_listen("192.0.2.1:7").text(), "192.0.2.1:7");
  EXPECT_EQ(parse_listen("[::]:7").text(), "[::]:7");
  for (const char* bad :
       {"", ":5", "a:", "a:0", "a:65536", "a:5x", "a:5:6", "::1", "[::1", "[::1]x", "[::1]:"})
    EXPECT_THROW((void)parse_connect(bad), Error) << bad;
  for (const char* bad : {"", "host", "192.0.2.1", "a:", "65536", "-1", "5x", "[::]", "::1"})
    EXPECT_THROW((void)parse_listen(bad), Error) << bad;
}

TEST(RdmaExchange, OverIpv6Too) {
  std::optional<Listener> listener;
  try {
    listener.emplace(SocketName{"::1", 0});
  } catch (const Error&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  std::thread other([&] { (void)Exchange::connect(listener->at(), 5); });
  const Exchange server = listener->accept(5, 5);
  other.join();
  EXPECT_TRUE(server.peer().starts_with("[::1]:")) << server.peer();
}

}  // namespace
}  // namespace doorbell::rdma
