// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bench between two processes: what they agree about, their messages, and what each makes of the other's
// end.
#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <thread>

#include "net/bench/daqiri_csv.hpp"
#include "net/bench_run.hpp"
#include "net/peer/peer_link.hpp"
#include "net/peer/remote.hpp"
#include "net/peer/serve.hpp"
#include "net/sockets/meeting.hpp"
#include "net/sockets/socket.hpp"

namespace doorbell::net {
namespace {

/// A test's own part beside a run of two processes.
struct Beside {
  std::function<void(const exchange::SocketName& server)> before = [](const auto&) {};
  std::function<void(const std::string& what)> client_progress = nullptr;
  measure::StopFlag server_stop;
  std::atomic<bool> server_ended{false};
  std::string server_failure, client_failure;
  std::vector<std::string> server_said;
};

/// The listening process of a run, as a thread of this one, while `client` is the other.
void beside_server(double timeout_s, ServeResult* served, Beside& beside,
                   const std::function<void(const exchange::SocketName& server)>& client) {
  std::string address;
  std::atomic<bool> listening{false};
  std::thread server([&] {
    try {
      ServeOptions s;
      s.at = {.host = "127.0.0.1", .port = 0};
      s.timeout_s = timeout_s;
      *served = serve(s, {.stop = &beside.server_stop, .progress = [&](double, const std::string& what) {
                            beside.server_said.push_back(what);
                            if (listening) return;
                            address = what.substr(what.rfind(' ') + 1);
                            listening = true;
                            listening.notify_all();
                          }});
    } catch (const Error& e) {
      beside.server_failure = e.what();
      listening = true;
      listening.notify_all();
    }
    beside.server_ended = true;
  });
  listening.wait(false);
  try {
    client(exchange::parse_connect(address, kRunKind.default_port));
  } catch (const Error& e) {
    beside.client_failure = e.what();
  }
  server.join();
}

/// Both processes of a run.
measure::BenchResult between_two(BenchOptions o, ServeResult* served, Beside& beside) {
  o.role = Role::sender;
  o.link.clear();
  measure::BenchResult r;
  beside_server(o.timeout_s, served, beside, [&](const exchange::SocketName& at) {
    o.other_end = at;
    beside.before(at);
    r = run_bench(o, {.progress = [&](double, const std::string& what) {
                    if (beside.client_progress) beside.client_progress(what);
                  }});
  });
  return r;
}

measure::BenchResult between_two(const BenchOptions& o, ServeResult* served) {
  Beside beside;
  measure::BenchResult r = between_two(o, served, beside);
  EXPECT_EQ(beside.server_failure, "");
  EXPECT_EQ(beside.client_failure, "");
  return r;
}

TEST(NetTwoProcesses, AccountForEveryPacket) {
  for (const char* stream : {"tcp", "udp"}) {
    BenchOptions o = options_of(stream, 1000, 3000);
    o.tx_queues = o.rx_queues = 2;
    o.repeats = 2;
    o.payloads = {64, 1000};
    ServeResult served;
    const measure::BenchResult r = between_two(o, &served);
    ASSERT_EQ(r.cells.size(), 2u);
    EXPECT_FALSE(r.failed);
    expect_accounted(r);
    EXPECT_EQ(served.cells, 2u);
    EXPECT_EQ(served.errors, 0u);
    EXPECT_GT(r.cells[0].metrics.latency_ns.count, 0u) << "both are on one machine, and so on one clock";
  }
}

TEST(NetTwoProcesses, FaultsAreFound) {
  BenchOptions o = options_of("udp", 1000, 3000);
  o.faults.probability[static_cast<u32>(model::Fault::duplicate)] = 0.01;
  ServeResult served;
  const measure::BenchResult r = between_two(o, &served);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.cell().verify.duplicated, r.cell().extra.at("model").at("injected").at("duplicate"));
  EXPECT_GT(served.errors, 0u);
}

TEST(NetTwoProcesses, BothEndsHaveOneVerdict) {
  BenchOptions o = options_of("tcp", 1000, 500);
  ServeResult served;
  EXPECT_FALSE(between_two(o, &served).failed);
  EXPECT_EQ(served.code, 0);
  EXPECT_EQ(served.verdict, "OK");
  o.late_after_s = 1e-9;
  const measure::BenchResult r = between_two(o, &served);
  EXPECT_TRUE(r.failed);
  EXPECT_GT(r.cell().errors.at("late"), 0u);
  EXPECT_GE(served.errors, r.cell().errors.at("late"));
  EXPECT_EQ(served.code, 2);
  EXPECT_NE(served.verdict.find(" late"), std::string::npos) << served.verdict;
}

/// Datagrams that others send to the ports of a run are not the run's.
TEST(NetTwoProcesses, AStrangersDatagramsDoNoHarm) {
  const Descriptor stranger(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  std::string datagram(64, 'x');
  datagram[0] = '\xdb';
  u64 sent = 0;
  const auto send_to_all = [&] {
    const u16 first = StreamRequest{}.port;
    for (u16 port = first; port < first + 16; ++port) {
      const sockaddr_in to = sockets::address_of("127.0.0.1", port);
      if (::sendto(stranger.get(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&to), sizeof to) > 0)
        ++sent;
    }
  };
  Beside beside;
  beside.client_progress = [&](const std::string&) { send_to_all(); };
  BenchOptions o = options_of("udp", 1000, 0);
  o.tx_queues = o.rx_queues = 2;
  o.duration_s = 0.2;
  o.target_gbps = 0.05;
  ServeResult served;
  const measure::BenchResult r = between_two(o, &served, beside);
  EXPECT_EQ(beside.client_failure + beside.server_failure, "");
  EXPECT_GT(sent, 0u);
  ASSERT_EQ(r.cells.size(), 1u);
  EXPECT_FALSE(r.failed) << r.cell().extra.dump(1);
  EXPECT_EQ(served.errors, 0u);
  EXPECT_EQ(served.code, 0);
  EXPECT_EQ(r.cell().extra.at("net").at("alien"), 0u);
}

/// A client that has been suspended says nothing, and its connection goes on.
TEST(NetTwoProcesses, ASuspendedClientDoesNotHoldTheListener) {
  Beside beside;
  beside.client_progress = [&](const std::string&) {
    while (!beside.server_ended) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  BenchOptions o = options_of("tcp", 1000, 0);
  o.duration_s = 100'000;
  o.timeout_s = 1;
  ServeResult served;
  (void)between_two(o, &served, beside);
  EXPECT_NE(beside.server_failure.find("in time"), std::string::npos) << beside.server_failure;
  EXPECT_NE(beside.client_failure.find("it has failed"), std::string::npos) << beside.client_failure;
}

/// Another run of this machine may have the ports that are tried first.
TEST(NetTwoProcesses, PortsOfOthersAreLeftAlone) {
  const u16 first = StreamRequest{}.port;
  for (const auto& [stream, type] : {std::pair{"tcp", SOCK_STREAM}, {"udp", SOCK_DGRAM}}) {
    const Descriptor other(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    sockaddr_in at = sockets::address_of("127.0.0.1", first);
    const int on = 1;  // connections of the tests before linger
    if (type == SOCK_STREAM) ::setsockopt(other.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Another test may have it, and give it back before the run begins.
    const bool taken = ::bind(other.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
                       (type == SOCK_DGRAM || ::listen(other.get(), 1) == 0);
    BenchOptions o = options_of(stream, 1000, 500);
    o.tx_queues = o.rx_queues = 2;
    ServeResult served;
    const measure::BenchResult r = between_two(o, &served);
    ASSERT_EQ(r.cells.size(), 1u) << stream;
    EXPECT_FALSE(r.failed) << stream;
    const auto& ports = r.cell().extra.at("stream").at("ports");
    ASSERT_EQ(ports.size(), 2u);
    EXPECT_GE(ports[0].get<u16>(), first + (taken ? 1 : 0));
    EXPECT_GT(ports[1].get<u16>(), ports[0].get<u16>());
  }
}

TEST(NetTwoProcesses, EachEndSaysWhyTheOtherHasFailed) {
  BenchOptions o = options_of("tcp", 1000, 500);
  o.role = Role::sender;
  o.link.clear();
  ServeResult served;
  Beside sender_fails;
  beside_server(60, &served, sender_fails, [&](const exchange::SocketName& at) {
    o.other_end = at;
    RemoteReceiver remote(o, nullptr);
    (void)remote.open(o, {{1000, 64, 1, 1, 0, 0}, 7});
    remote.fail("it has no memory for its slots");
  });
  EXPECT_NE(sender_fails.server_failure.find("no memory for its slots"), std::string::npos)
      << sender_fails.server_failure;
  EXPECT_EQ(sender_fails.client_failure, "");

  // The receiver's rings are too large; the sender, which is about to connect, does not wait for it.
  Beside receiver_fails;
  beside_server(60, &served, receiver_fails, [&](const exchange::SocketName& at) {
    o.other_end = at;
    RemoteReceiver remote(o, nullptr);
    const auto link = remote.open(o, {{u64{1} << 30, 64, 1, 1, 0, 0}, 7});
    (void)sockets::learn(*link->other_process(), 1);
  });
  EXPECT_NE(receiver_fails.client_failure.find("67108864"), std::string::npos)
      << receiver_fails.client_failure;
}

TEST(NetTwoProcesses, StrangersAreTurnedAway) {
  Beside beside;
  beside.before = [](const exchange::SocketName& server) {
    for (const char* said : {"", "GET / HTTP/1.0\r\n\r\n"}) {
      const exchange::Connected c =
          exchange::connect_tcp(server, exchange::Wait::lasting(60, nullptr), "net");
      EXPECT_EQ(::send(c.socket.get(), said, std::strlen(said), MSG_NOSIGNAL),
                static_cast<ssize_t>(std::strlen(said)));
    }
  };
  ServeResult served;
  const measure::BenchResult r = between_two(options_of("tcp", 1000, 500), &served, beside);
  EXPECT_EQ(beside.client_failure + beside.server_failure, "");
  EXPECT_EQ(r.cells.size(), 1u);
  ASSERT_GE(beside.server_said.size(), 3u);
  EXPECT_NE(beside.server_said[1].find("turned away"), std::string::npos) << beside.server_said[1];
  EXPECT_NE(beside.server_said[2].find("does not speak doorbell's protocol"), std::string::npos);
}

TEST(NetTwoProcesses, WhatWasMeasuredIsKeptWhenTheOtherEndFails) {
  Beside beside;
  beside.client_progress = [&](const std::string& what) {
    if (what.find("repeat 2 of") != std::string::npos) beside.server_stop.request(2);
  };
  BenchOptions o = options_of("tcp", 1000, 200);
  o.repeats = 1'000'000;  // the other end fails in one of them
  ServeResult served;
  const measure::BenchResult r = between_two(o, &served, beside);
  EXPECT_EQ(beside.client_failure, "");
  EXPECT_NE(beside.server_failure, "");
  ASSERT_EQ(r.cells.size(), 1u);
  EXPECT_TRUE(r.failed);
  EXPECT_EQ(r.stop_reason, StopReason::broken);
  EXPECT_GE(r.cell().repeats.size(), 1u);
  EXPECT_EQ(r.cell().errors.at("completion"), 1u);
  EXPECT_TRUE(r.cell().extra.at("drops").at("unexplained").is_null());
  EXPECT_NE(daqiri_csv(r.cells).find("tcp"), std::string::npos);
}

TEST(NetTwoProcesses, ASenderStopsWhenTheOtherEndHasFailed) {
  Beside beside;
  beside.client_progress = [&](const std::string&) { beside.server_stop.request(2); };
  BenchOptions o = options_of("udp", 1000, 0);
  o.duration_s = 100'000;
  ServeResult served;
  (void)between_two(o, &served, beside);
  EXPECT_NE(beside.client_failure.find("it has failed"), std::string::npos) << beside.client_failure;
}

TEST(NetMessages, BetweenTwoMachinesNothingIsLate) {
  nlohmann::ordered_json m = cell_message(options_of("udp", 1000, 1), {{1000, 64, 1, 1, 0, 0}, 7});
  BenchOptions o;
  CellSetup setup;
  Stream stream;
  read_cell_message(m, &o, &setup);
  EXPECT_EQ(receiving_options(o, setup, stream).receiver.late_ns, 50'000'000'000u);
  m["machine"] = "another";
  read_cell_message(m, &o, &setup);
  EXPECT_EQ(receiving_options(o, setup, stream).receiver.late_ns, ~u64{0});
}

TEST(NetMessages, NumbersThatCannotBeAreRefused) {
  const nlohmann::ordered_json good = totals_message({});
  (void)read_totals_message(good);
  for (const char* key : {"lost", "drops_ring", "in_windows"}) {
    nlohmann::ordered_json bad = good;
    bad[key] = ~u64{0};
    EXPECT_THROW((void)read_totals_message(bad), Error) << key;
  }
}

TEST(NetMessages, SayHowFramesAndWindowsAre) {
  BenchOptions there = options_of("raw", 1000, 1), here;
  there.encapsulation = Encapsulation::bare;
  there.steering = Steering::rss;
  there.rss_fields = RssFields::addresses;
  there.windows.convert = conversion(7, true);
  CellSetup setup;
  read_cell_message(cell_message(there, {{1000, 64, 2, 1, 0, 9}, 7}), &here, &setup);
  EXPECT_EQ(here.encapsulation, Encapsulation::bare);
  EXPECT_EQ(here.steering, Steering::rss);
  EXPECT_EQ(here.rss_fields, RssFields::addresses);
  EXPECT_EQ(here.windows.convert, there.windows.convert);
  EXPECT_EQ(setup.flows(), 9u);
}

TEST(NetMessages, AreCheckedWhenTheyAreRead) {
  const nlohmann::ordered_json good = cell_message(options_of("tcp", 1000, 1), {{1000, 64, 1, 1, 0}, 7});
  BenchOptions o;
  CellSetup setup;
  read_cell_message(good, &o, &setup);
  EXPECT_EQ(setup.run_tag, 7);
  EXPECT_EQ(setup.cell.payload, 1000u);
  for (const auto& [key, value] : good.items()) {
    nlohmann::ordered_json bad = good;
    bad[key] = "nonsense";
    if (key != "engine" && key != "machine") {
      EXPECT_THROW(read_cell_message(bad, &o, &setup), Error) << key;
    }
    bad.erase(key);
    EXPECT_THROW(read_cell_message(bad, &o, &setup), Error) << key;
  }
  ReceivePhase p;
  p.begin_ns = 77;
  p.counts.unique = 5;
  p.latency.record(100);
  p.latency.record(3000);
  p.threads.emplace_back();
  const nlohmann::ordered_json phase = phase_message(p);
  const ReceivePhase read = read_phase_message(phase);
  EXPECT_EQ(read.begin_ns, p.begin_ns) << "one clock counts for both";
  EXPECT_EQ(read.counts.unique, 5u);
  EXPECT_EQ(read.latency.count(), 2u);
  EXPECT_EQ(read.latency.max(), 3000);
  for (const auto& [key, value] : phase.items()) {
    nlohmann::ordered_json bad = phase;
    bad[key] = -1;
    EXPECT_THROW((void)read_phase_message(bad), Error) << key;
  }
}

TEST(PeerLinks, PacketsArriveWhereTheReceiverListens) {
  EXPECT_EQ(PeerLink(End::rx, "", "", "127.0.0.1").ip(End::rx), "127.0.0.1");
  for (const char* anywhere : {"", "::1", "localhost"})
    EXPECT_EQ(PeerLink(End::rx, "", "", anywhere).ip(End::rx), "0.0.0.0") << anywhere;
}

}  // namespace
}  // namespace doorbell::net
