// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Links that stay: made, looked at, removed, with and without mishaps in between.

#include "net/links/kept_link.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "cli/parse.hpp"
#include "errors.hpp"
#include "net/cli/parts.hpp"
#include "net/kept_scratch.hpp"
#include "net/links/kept_state.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;
using test::Forked;
using test::KeptLinkTest;
using test::said_by;

TEST(KeptLinkOptions, Contradictions) {
  const auto said = [](KeptLink link) { return error_of([&] { (void)link_up(link); }); };
  expect_says(said({.names = {"a", "a"}}), "both ends are in one network namespace");
  expect_says(said({.names = {"a/b", "c"}}), "network namespace 'a/b': it is no name");
  expect_says(said({.tx_port = "eth9"}), "it has only one port");
  expect_says(said({.tx_port = "eth9", .rx_port = "eth9"}), "it is both ends of the link");
  expect_says(said({.tx_address = "192.0.2.1"}), "tx address: '192.0.2.1' is no IPv4 address");
  expect_says(said({.rx_address = "192.0.2.1/30"}), "they are not two addresses of one network");
  expect_says(said({.rx_address = "192.0.2.5/30"}), "they are not two addresses of one network");
  expect_says(said({.rx_address = "192.0.2.2/24"}), "they are not two addresses of one network");
}

TEST(KeptLinkState, SurvivesBeingWritten) {
  KeptState state;
  state.ports[0] = {.interface = "eth1",
                    .moved = true,
                    .mtu = 1500,
                    .up = true,
                    .gro = true,
                    .channels = 8,
                    .space = 77,
                    .address = "192.0.2.1/30"};
  state.ports[1].interface = "eth2";
  state.home = ~u64{0};
  state.link_mtu = 9000;
  state.complete = true;
  const KeptState again = parse_kept_state("x", kept_state_text(state));
  EXPECT_EQ(kept_state_text(again), kept_state_text(state));
  EXPECT_EQ(again.ports[0].channels, 8u);
  EXPECT_EQ(again.home, ~u64{0});
  const std::string whole = kept_state_text(state);
  for (std::size_t n = 0; n + 2 < whole.size(); ++n)
    expect_says(error_of([&] { (void)parse_kept_state("/run/x", whole.substr(0, n)); }),
                "/run/x: is not what doorbell writes there");
  expect_says(error_of([&] { (void)parse_kept_state("/run/x", "{\"ports\": []}"); }),
              "is not what doorbell writes there");
}

TEST(KeptLinkCable, ComparesWithThePortsOwnCounter) {
  using State = Finding::State;
  EXPECT_EQ(compare_with_cable("p", 10, 12, 2).state, State::good);
  EXPECT_EQ(compare_with_cable("p", 10, 11, 2).state, State::wrong);
  EXPECT_EQ(compare_with_cable("p", 10, 10, 2).text,
            "port p: 2 packets were received, but only 0 from the cable");
  EXPECT_EQ(compare_with_cable("p", {}, 10, 2).state, State::unknown);
}

TEST_F(KeptLinkTest, UpVerifyUseDown) {
  inside([&] {
    const std::string name = link_up({.names = names_, .mtu = 4000, .queues = 2});
    EXPECT_EQ(name, names_.tx + "/db_tx," + names_.rx + "/db_rx");
    expect_all_good(link_verify(names_));
    {
      const auto link = open_link({.spec = name});
      EXPECT_EQ(link->kind(), "kernel");
      EXPECT_EQ(link->mtu(), 4000u);
      EXPECT_EQ(link->facts()["tx"]["namespace"], names_.tx);
      EXPECT_EQ(link->facts()["tx"]["tx_queues"], 2);
      test::expect_crossing(*link);
    }
    expect_says(error_of([&] { (void)link_up({.names = names_}); }), "it is up already");
    expect_all_good(link_verify(names_));
    const auto done = link_down(names_);
    EXPECT_EQ(done.size(), 2u);
  });
  expect_nothing_left();
  expect_says(error_of([&] { (void)link_verify(names_); }), "doorbell has made no such link");
  expect_says(error_of([&] { (void)link_down(names_); }), "doorbell has made no such link");
}

TEST_F(KeptLinkTest, VerifySaysWhatIsWrong) {
  (void)link_up({.names = names_});
  const Namespace tx = Namespace::open(names_.tx), rx = Namespace::open(names_.rx);
  netlink::Interfaces at_tx = interfaces_in(tx), at_rx = interfaces_in(rx);
  at_rx.set_mtu(at_rx.get("db_rx"), 1500);
  expect_says(wrong_of(link_verify(names_)), names_.rx + ": interface db_rx has the MTU 1500 and not 9000");
  at_rx.set_mtu(at_rx.get("db_rx"), 9000);
  expect_all_good(link_verify(names_));

  at_tx.set_up(at_tx.get("db_tx"), false);
  expect_says(wrong_of(link_verify(names_)), names_.tx + ": interface db_tx is switched off");
  expect_says(wrong_of(link_verify(names_)), "db_rx has no carrier");
  at_tx.set_up(at_tx.get("db_tx"));
  // The kernel took the entry along when it was switched off; asking for it works as well.
  expect_all_good(link_verify(names_));

  const netlink::Address address = netlink::parse_address("", "192.0.2.2/30");
  at_rx.remove_address(at_rx.get("db_rx"), address);
  expect_says(wrong_of(link_verify(names_)), "db_rx has not the address 192.0.2.2/30");
  at_rx.add_address(at_rx.get("db_rx"), address);
  // Everything is set, but packets for the other end go nowhere.
  at_tx.add_neighbour(at_tx.get("db_tx"), address.ip, {2, 0, 0, 0, 0, 99});
  const std::string said = wrong_of(link_verify(names_));
  expect_says(said, "no datagram of 32 bytes arrives from 192.0.2.1 at 192.0.2.2");

  ASSERT_TRUE(remove_named_namespace(names_.rx));
  expect_says(wrong_of(link_verify(names_)), names_.rx + " is missing");
  // Somebody else's of the same name is left alone.
  make_named_namespace(names_.rx);
  expect_says(wrong_of(link_verify(names_)), names_.rx + " is not the one that was made for the link");
  EXPECT_TRUE(said_by(link_down(names_), names_.rx + ": not the one that was made here; left alone"));
  EXPECT_TRUE(namespace_exists(names_.rx));
  EXPECT_FALSE(namespace_exists(names_.tx));
  EXPECT_TRUE(remove_named_namespace(names_.rx));
}

TEST_F(KeptLinkTest, NamesThatAreTaken) {
  make_named_namespace(names_.rx);
  expect_says(error_of([&] { (void)link_up({.names = names_}); }),
              "the name is taken, and not by a link of doorbell");
  expect_says(error_of([&] { make_named_namespace(names_.rx); }), "the name is taken");
  EXPECT_TRUE(namespace_exists(names_.rx));
  EXPECT_FALSE(namespace_exists(names_.tx));
  EXPECT_TRUE(remove_named_namespace(names_.rx));
  EXPECT_FALSE(remove_named_namespace(names_.rx));
  expect_nothing_left();
}

/// link_up() was killed before it had made a namespace; then its user made one of that name.
TEST_F(KeptLinkTest, WhatAKilledUpHasNotMadeIsLeftAlone) {
  KeptState state;
  state.ports[0].interface = "db_tx";
  state.ports[1].interface = "db_rx";
  state.home = Namespace::current().id();
  write_kept_state(names_, state);
  make_named_namespace(names_.tx);
  const u64 id = Namespace::open(names_.tx).id();
  expect_says(error_of([&] { (void)link_up({.names = names_}); }), "the name is taken");
  ASSERT_TRUE(namespace_exists(names_.tx));
  EXPECT_EQ(Namespace::open(names_.tx).id(), id);
  EXPECT_TRUE(remove_named_namespace(names_.tx));
  // An empty name is what it leaves itself.
  write_kept_state(names_, state);
  std::ofstream(std::string(kNamespaceFolder) + "/" + names_.tx).close();
  (void)link_up({.names = names_});
  expect_all_good(link_verify(names_));
  (void)link_down(names_);
  expect_nothing_left();
}

TEST_F(KeptLinkTest, OneOfTwoWins) {
  const auto raise = [&](int pipe) {
    Forked::say(pipe, error_of([&] { (void)link_up({.names = names_}); }));
    return 0;
  };
  Forked a(raise), b(raise);
  std::vector<std::string> said = {a.line(), b.line()};
  std::sort(said.begin(), said.end());
  // "link ..." before "no error".
  expect_says(said[0], "it is up already");
  EXPECT_EQ(said[1], "no error");
  expect_all_good(link_verify(names_));
  (void)link_down(names_);
}

TEST_F(KeptLinkTest, TwoLinksBesideEachOther) {
  const KeptNames others = {names_.tx + "2", names_.rx + "2"};
  (void)link_up({.names = names_});
  (void)link_up({.names = others});
  (void)link_down(names_);
  expect_all_good(link_verify(others));
  (void)link_down(others);
  expect_nothing_left();
}

TEST_F(KeptLinkTest, TheCommand) {
  const cli::Command command = cli::net_link_command();
  measure::StopFlag stop;
  const std::vector<cli::Command> none;
  cli::Context context{.program = "doorbell", .argv = {}, .stop = stop, .commands = none};
  int code = 0;
  const auto run = [&](std::vector<std::string> words) {
    testing::internal::CaptureStdout();
    try {
      words.insert(words.end(), {"--tx-namespace", names_.tx, "--rx-namespace", names_.rx});
      code = command.run(cli::parse("doorbell net-link", command.options, words), context);
    } catch (...) {
      (void)testing::internal::GetCapturedStdout();
      throw;
    }
    std::fflush(stdout);
    return testing::internal::GetCapturedStdout();
  };
  expect_says(error_of([&] { (void)run({"sideways"}); }), "up, verify, down");
  expect_says(error_of([&] {
                (void)run({"down", "--mtu", "1500"});
              }),
              "--mtu: net link down does not take it");
  expect_says(error_of([&] {
                (void)run({"up", "--ports", "eth8"});
              }),
              "--ports: 'eth8' is not two interfaces");
  expect_says(error_of([&] {
                (void)run({"up", "--ports", "eth8,eth9", "--gso", "off"});
              }),
              "--gso: it is for a veth pair");
  expect_says(run({"up", "--mtu", "1500", "--gso", "off"}),
              "doorbell net udp --link " + names_.tx + "/db_tx");
  EXPECT_EQ(code, 0);
  expect_says(run({"verify"}), "ok      datagrams of 60 and 1500 bytes arrive");
  EXPECT_EQ(code, 0);
  test::switch_on(Namespace::open(names_.tx), "db_tx", false);
  expect_says(run({"verify"}),
              "wrong   network namespace " + names_.tx + ": interface db_tx is switched off");
  EXPECT_EQ(code, 1);
  expect_says(run({"down"}), names_.tx + ": removed");
  EXPECT_EQ(code, 0);
  expect_nothing_left();
}

}  // namespace
}  // namespace doorbell::net
