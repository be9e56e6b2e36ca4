// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Exchange over the loopback interface: two peers that agree, and peers that misbehave.

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "exchange_peers.hpp"
#include "system/clock.hpp"

namespace doorbell::exchange {
namespace {

using Json = nlohmann::ordered_json;

/// A server whose client `act`s; what accepting it, or the first receive of "options" after it, throws.
std::string served(const std::function<void(RawPeer&)>& act, double limit_s = 2) {
  Listener listener(kKind, kAnyPort);
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

TEST(Exchange, MessagesGoBothWays) {
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

TEST(Exchange, BarriersMeetAndMismatchesAreTold) {
  Pair p;
  std::thread server([&] {
    p.server->barrier("start");
    expect_error([&] { p.server->barrier("stop"); }, "it is at barrier \"end\", this end at \"stop\"");
  });
  p.client->barrier("start");
  expect_error([&] { p.client->barrier("end"); }, "\"stop\"");
  server.join();
}

TEST(Exchange, AFailureIsToldToTheOtherEnd) {
  Pair p;
  p.client->send("options", Json::object());  // unread when the server goes
  p.server->fail("no such device");
  p.server.reset();
  expect_error([&] { (void)p.client->receive("endpoints"); }, "it has failed: no such device");
}

TEST(Exchange, WhatTheOtherEndSaysIsNoCommandToTheTerminal) {
  Pair p;
  p.server->fail(
      "gone\x1b[2J\nand \xc2\x9b"
      "1m \xc3\xa9");
  expect_error([&] { (void)p.client->receive("endpoints"); }, "it has failed: gone?[2J?and ??1m \xc3\xa9");
  Pair q;
  q.server->send("\x1b[2J", Json::object());
  expect_error([&] { (void)q.client->receive("endpoints"); }, "it sent '?[2J' where");
}

/// A signal has interrupted a call before: its errno says nothing of this connection.
TEST(Exchange, AFailureIsToldOnceAfterAnInterruptedCall) {
  Pair p;
  p.client.reset();
  errno = EINTR;
  p.server->fail("interrupted");
}

TEST(Exchange, WhoSaysNothingKeepsNobodyOut) {
  Listener listener(kKind, kAnyPort);
  const RawPeer silent(listener.at()), another(listener.at());
  RawPeer right(listener.at());
  right.say_message(kHello);
  const Exchange x = listener.accept(60, 1e6, nullptr, [](const Error& e) { ADD_FAILURE() << e.what(); });
  EXPECT_TRUE(x.server());
}

TEST(Exchange, AClientThatGoesBeforeItBeginsIsNotTheOne) {
  std::atomic<u16> port{0};
  std::vector<std::string> said;
  std::thread clients([&] {
    port.wait(0);
    const SocketName at{"127.0.0.1", port};
    {
      RawPeer gone(at);
      gone.say_message(kHello);
    }
    Exchange right = Exchange::connect(kKind, at, 60);
    right.send("cell", Json::object());
    right.barrier("end");
    // Nobody listens for another client.
    expect_error([&] { (void)Exchange::connect(kKind, at, 60); }, "refused");
    right.barrier("over");
  });
  Client c = wait_for_client(kKind, kAnyPort, kListening, {"cell"}, 60, 60,
                             {.progress = [&](double, const std::string& what) {
                               said.push_back(what);
                               if (port != 0) return;
                               port = static_cast<u16>(std::stoul(what.substr(what.rfind(':') + 1)));
                               port.notify_all();
                             }});
  EXPECT_EQ(c.first.type, "cell");
  ASSERT_EQ(said.size(), 2u);
  test::expect_says(said[1], "turned away");
  c.exchange.barrier("end");
  c.exchange.barrier("over");
  clients.join();
}

/// One that has begun a message and does not go on waits beside the others.
TEST(Exchange, HalfAMessageHoldsNobodyOff) {
  Listener listener(kKind, kAnyPort);
  std::vector<std::unique_ptr<RawPeer>> halves;
  const std::string hello = RawPeer::frame(kHello);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{8}, std::size_t{9}, hello.size() - 1}) {
    halves.push_back(std::make_unique<RawPeer>(listener.at()));
    halves.back()->say(hello.substr(0, bytes));
  }
  std::thread client([&] {
    Exchange right = Exchange::connect(kKind, listener.at(), 60);
    right.barrier("served");
  });
  std::vector<std::string> turned_away;
  // The limit of one message is far longer than this test may take.
  Exchange x =
      listener.accept(3600, 3600, nullptr, [&](const Error& e) { turned_away.emplace_back(e.what()); });
  x.barrier("served", 60);
  client.join();
  EXPECT_TRUE(turned_away.empty()) << turned_away.front();
  // Whoever finishes its message is heard.
  halves.back()->say(hello.substr(hello.size() - 1));
  const Exchange later =
      listener.accept(60, 60, nullptr, [&](const Error& e) { turned_away.emplace_back(e.what()); });
  EXPECT_TRUE(turned_away.empty());
}

TEST(Exchange, SilenceEndsWithTheDeadline) {
  Pair p(0.2);
  const u64 begin = wall_ns();
  expect_error([&] { (void)p.server->receive("options"); }, "it does not send 'options' in time");
  expect_error([&] { (void)p.server->receive("options", 0.1); }, "in time");
  const double seconds = static_cast<double>(wall_ns() - begin) * 1e-9;
  EXPECT_GE(seconds, 0.3);
  EXPECT_LT(seconds, 3);
}

TEST(Exchange, APeerThatReadsNothingEndsWithTheDeadline) {
  Pair p(0.3);
  const std::string large(4'000'000, 'x');
  expect_error(
      [&] {
        for (int i = 0; i < 20; ++i) p.server->send("report", large);
      },
      "it does not take 'report' in time");
}

TEST(Exchange, AnEarlyEndIsTold) {
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

TEST(Exchange, WaitsEndWithAStop) {
  measure::StopFlag stop;
  Listener listener(kKind, kAnyPort);
  std::thread asks([&] { stop.request(SIGINT); });
  expect_error([&] { (void)listener.accept(30, 1, &stop); }, "interrupted");
  asks.join();
}

TEST(Exchange, NoClientConnects) {
  Listener listener(kKind, kAnyPort);
  expect_error([&] { (void)listener.accept(0.1, 1); }, "no client has connected in time");
}

TEST(Exchange, NoServerListens) {
  SocketName gone;
  { gone = Listener(kKind, kAnyPort).at(); }
  expect_error([&] { (void)Exchange::connect(kKind, gone, 2); }, "Connection refused");
  expect_error([&] { (void)Exchange::connect(kKind, gone, 2); }, "--listen");
  // With an empty label it is no name: no server is asked for it.
  expect_error([&] { (void)Exchange::connect(kKind, {"no..host", 1}, 2); }, "connecting to no..host:1");
}

TEST(Exchange, ThePortIsTaken) {
  Listener listener(kKind, kAnyPort);
  expect_error([&] { Listener second(kKind, listener.at()); }, "Address already in use");
}

TEST(Exchange, TwoServersAndOneselfAreTold) {
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"path":"rdma","nonce":7,"server":true)")); },
                "it is not the other role");
}

TEST(Exchange, AnotherVersion) {
  expect_served(
      [](RawPeer& p) {
        p.say_message(hello(R"(,"path":"rdma","nonce":7,"server":false)", Exchange::kVersion + 1));
      },
      fmt::format("it speaks version {} of doorbell's protocol, this end version {}", Exchange::kVersion + 1,
                  Exchange::kVersion));
}

TEST(Exchange, AnotherKindOfRunIsToldToBoth) {
  const RunKind net{"net", 18600};
  Listener listener(kKind, kAnyPort);
  std::string at_client;
  std::thread client([&] { at_client = error_of([&] { (void)Exchange::connect(net, listener.at(), 5); }); });
  expect_error([&] { (void)listener.accept(5, 5); }, "it runs `doorbell net`, this end `doorbell rdma`");
  client.join();
  test::expect_says(at_client, "it runs `doorbell rdma`, this end `doorbell net`");
  expect_error([&] { (void)Exchange::connect({"net", 1}, {"127.0.0.1", 1}, 2); }, "`doorbell net --listen`");
}

TEST(Exchange, Garbage) {
  expect_served([](RawPeer& p) { p.say("GET / HTTP/1.1\r\n\r\n"); }, "it does not speak doorbell's protocol");
  expect_served([](RawPeer& p) { p.say(std::string(64, '\0')); }, "it does not speak doorbell's protocol");
  expect_served([](RawPeer& p) { p.say(std::string("dbrx\xff\xff\xff\xff", 8)); }, "4294967295 bytes");
  for (const char* text :
       {"", "{", "[]", "null", "{}", R"({"type":1,"body":2})", R"({"type":"hello"})", "\xff\xfe"})
    expect_served([&](RawPeer& p) { p.say_message(text); }, "its message is none of doorbell's");
  for (const auto& [body, says] : {std::pair{"1", "'version' is missing"},
                                   {"{}", "'version' is missing"},
                                   {R"({"version":"1"})", "'version' is no whole number in 0.."},
                                   {R"({"version":-1})", "'version' is no whole number in 0.."},
                                   {R"({"version":1.5})", "'version' is no whole number in 0.."}})
    expect_served([&](RawPeer& p) { p.say_message(std::string(R"({"type":"hello","body":)") + body + "}"); },
                  says);
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"nonce":7,"server":false)")); }, "of which path");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"path":7,"nonce":7,"server":false)")); },
                "of which path");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"path":"\u001b[2J","nonce":7,"server":false)")); },
                "it runs `doorbell ?[2J`");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"path":"rdma","nonce":7)")); },
                "whether it is the server");
  expect_served([](RawPeer& p) { p.say_message(hello(R"(,"path":"rdma","server":false)")); },
                "'nonce' is missing");
  expect_served([](RawPeer& p) { p.say_message(R"({"type":"endpoints","body":[]})"); },
                "it sent 'endpoints' where 'hello' was expected");
}

TEST(Exchange, DeepNestingIsOnlyGarbage) {
  expect_served([](RawPeer& p) { p.say_message(std::string(200'000, '[')); },
                "its message is none of doorbell's");
  // A whole message, which would be printed where it does not fit.
  const auto barrier = [](u32 depth) {
    return [depth](RawPeer& p) {
      p.say_message(kHello);
      p.say_message(R"({"type":"barrier","body":)" + std::string(depth, '[') + R"("a[[\"[[")" +
                    std::string(depth, ']') + "}");
    };
  };
  expect_served(barrier(60), "it sent 'barrier' where 'options' was expected");
  expect_served(barrier(100), "its message is none of doorbell's");
}

TEST(Exchange, AListenerMayGoOnAfterAStranger) {
  Listener listener(kKind, kAnyPort);
  RawPeer stranger(listener.at()), gone(listener.at()), right(listener.at());
  stranger.say("GET / HTTP/1.0\r\n\r\n");
  gone.close();
  right.say_message(kHello);
  std::vector<std::string> turned_away;
  const Exchange x =
      listener.accept(60, 60, nullptr, [&](const Error& e) { turned_away.emplace_back(e.what()); });
  EXPECT_TRUE(x.server());
  ASSERT_EQ(turned_away.size(), 2u);
  test::expect_says(turned_away[0], "it does not speak doorbell's protocol");
  expect_error([&] { (void)listener.accept(0.01, 1, nullptr, [](const Error&) {}); },
               "no client has connected");
}

TEST(Exchange, HalfAMessage) {
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

TEST(Exchange, NamesOfSockets) {
  EXPECT_EQ(parse_connect("node7", 18515).text(), "node7:18515");
  EXPECT_EQ(parse_connect("node7:4", 18600).text(), "node7:4");
  EXPECT_EQ(parse_connect("[fe80::1%eth0]", 18515).text(), "[fe80::1%eth0]:18515");
  EXPECT_EQ(parse_connect("[::1]:99", 18515).text(), "[::1]:99");
  EXPECT_EQ(parse_listen("18515").text(), "18515");
  EXPECT_EQ(parse_listen("192.0.2.1:7").text(), "192.0.2.1:7");
  EXPECT_EQ(parse_listen("[::]:7").text(), "[::]:7");
  for (const char* bad :
       {"", ":5", "a:", "a:0", "a:65536", "a:5x", "a:5:6", "::1", "[::1", "[::1]x", "[::1]:"})
    EXPECT_THROW((void)parse_connect(bad, 18515), Error) << bad;
  for (const char* bad : {"", "host", "192.0.2.1", "a:", "65536", "-1", "5x", "[::]", "::1"})
    EXPECT_THROW((void)parse_listen(bad), Error) << bad;
}

TEST(Exchange, OverIpv6Too) {
  std::optional<Listener> listener;
  try {
    listener.emplace(kKind, SocketName{"::1", 0});
  } catch (const Error&) {
    GTEST_SKIP() << "no IPv6 here";
  }
  std::thread other([&] { (void)Exchange::connect(kKind, listener->at(), 5); });
  const Exchange server = listener->accept(5, 5);
  other.join();
  EXPECT_TRUE(server.peer().starts_with("[::1]:")) << server.peer();
}

}  // namespace
}  // namespace doorbell::exchange
