// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Links that stay, over two ports of the machine: veth pairs of a namespace of the test stand in for them.

#include <gtest/gtest.h>

#include "errors.hpp"
#include "net/kept_scratch.hpp"
#include "net/links/kept_state.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::eventually;
using doorbell::test::expect_says;
using test::Forked;
using test::said_by;

class KeptPortsTest : public test::KeptLinkTest {
 protected:
  void SetUp() override {
    KeptLinkTest::SetUp();
    if (IsSkipped()) return;
    test::make_pair_in(space_(), "p0", "p1", 1500, 4);
    home_.emplace(interfaces_in(space_()));
    home_->set_up(home_->get("p0"));
  }
  [[nodiscard]] KeptLink link() const {
    return {.names = names_, .tx_port = "p0", .rx_port = "p1", .mtu = 3000};
  }
  std::optional<netlink::Interfaces> home_;
};

TEST_F(KeptPortsTest, AreLentAndGivenBackAsTheyWere) {
  home_->set_channels("p0", 3);
  inside([&] {
    KeptLink two = link();
    two.queues = 2;
    const std::string name = link_up(two);
    EXPECT_EQ(name, names_.tx + "/p0," + names_.rx + "/p1");
    EXPECT_FALSE(home_->find("p0"));
    EXPECT_FALSE(home_->find("p1"));
    EXPECT_EQ(interfaces_in(Namespace::open(names_.tx)).channels("p0"), 2u);
    EXPECT_TRUE(interfaces_in(Namespace::open(names_.rx)).gro("p1"));
    const auto findings = link_verify(names_);
    expect_all_good(findings);
    // veth counts no packets from a cable.
    EXPECT_EQ(findings.back().state, Finding::State::unknown);
    test::expect_crossing(*open_link({.spec = name}));
  });
  // Ports go back where they came from, and nowhere else.
  expect_says(error_of([&] { (void)link_down(names_); }), "its ports come from another network namespace");
  inside([&] {
    const auto done = link_down(names_);
    EXPECT_TRUE(said_by(done, "port p0: back, with an MTU of 1500"));
    EXPECT_TRUE(said_by(done, "port p1: back, with an MTU of 1500"));
  });
  EXPECT_EQ(home_->get("p0").mtu, 1500u);
  EXPECT_EQ(home_->get("p1").mtu, 1500u);
  EXPECT_TRUE(home_->get("p0").up);
  EXPECT_FALSE(home_->get("p1").up);
  EXPECT_FALSE(home_->gro("p1"));
  EXPECT_EQ(home_->channels("p0"), 3u);
  expect_nothing_left();
}

TEST_F(KeptPortsTest, InUseAreRefused) {
  const auto said = [&](const KeptLink& wanted) {
    std::string text;
    inside([&] { text = error_of([&] { (void)link_up(wanted); }); });
    return text;
  };
  KeptLink wanted = link();
  wanted.rx_port = "nobody";
  expect_says(said(wanted), "port nobody: there is no interface of this name here");
  wanted.rx_port = "lo";
  expect_says(said(wanted), "the loopback interface cannot be moved");
  home_->add_address(home_->get("p1"), netlink::parse_address("", "198.51.100.7/24"));
  expect_says(said(link()), "port p1: it is in use: it has the address 198.51.100.7");
  EXPECT_TRUE(home_->find("p0") && home_->find("p1"));
  expect_nothing_left();
}

TEST_F(KeptPortsTest, AFailureUndoesEverything) {
  KeptLink wanted = link();
  wanted.queues = 64;  // more than they have
  inside([&] { expect_says(error_of([&] { (void)link_up(wanted); }), "64 is not in 1..4"); });
  EXPECT_EQ(home_->get("p0").mtu, 1500u);
  EXPECT_TRUE(home_->get("p0").up);
  EXPECT_TRUE(home_->find("p1"));
  expect_nothing_left();
}

TEST_F(KeptPortsTest, AKilledUpIsUndoneByTheNext) {
  // Two ports that no cable connects: their other ends are off, and up waits for a carrier.
  test::make_pair_in(space_(), "q0", "q1");
  KeptLink stuck = link();
  stuck.rx_port = "q0";
  Forked child([&](int) {
    inside([&] { (void)link_up(stuck); });
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return !home_->find("p0") && !home_->find("q0"); }));
  EXPECT_EQ(child.end(SIGKILL), 128 + SIGKILL);
  const auto state = read_kept_state(names_);
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->complete);
  EXPECT_EQ(state->ports[0].space, Namespace::open(names_.tx).id());
  EXPECT_EQ(state->ports[1].space, Namespace::open(names_.rx).id());
  inside([&] {
    expect_says(wrong_of(link_verify(names_)), "has ended too early");
    (void)link_up(link());
    EXPECT_EQ(home_->get("q0").mtu, 1500u);
    expect_all_good(link_verify(names_));
    (void)link_down(names_);
  });
  EXPECT_TRUE(home_->find("p0"));
  expect_nothing_left();
}

TEST_F(KeptPortsTest, DownAfterANamespaceWasDeleted) {
  inside([&] { (void)link_up(link()); });
  // Virtual ports go with their namespace; those of hardware would come back by themselves.
  ASSERT_TRUE(remove_named_namespace(names_.tx));
  ASSERT_TRUE(eventually([&] { return !interfaces_in(Namespace::open(names_.rx)).find("p1"); }));
  inside([&] {
    EXPECT_TRUE(said_by(link_down(names_), "port p0: it is neither here nor in the network namespace"));
  });
  expect_nothing_left();
}

}  // namespace
}  // namespace doorbell::net
