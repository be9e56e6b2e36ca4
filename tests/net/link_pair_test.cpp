// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Links over interfaces that are there already, and what netlink says of mistakes.

#include <fcntl.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "net/scratch.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;

class InterfacePairTest : public testing::Test {
 protected:
  void SetUp() override {
    NEEDS_NAMESPACES();
    space_.emplace(Namespace::create());
    test::make_pair_in(*space_, "p0", "p1", 4000);
  }
  std::string refusal(const std::string& spec) {
    std::string said;
    space_->run([&] { said = error_of([&] { (void)open_link({.spec = spec}); }); });
    return said;
  }
  std::optional<Namespace> space_;
};

TEST_F(InterfacePairTest, OpensTwoInterfaces) {
  test::switch_on(*space_, "p0");
  test::switch_on(*space_, "p1");
  space_->run([&] {
    const auto link = open_link({.spec = "p0,p1"});
    EXPECT_EQ(link->name(), "p0,p1");
    EXPECT_EQ(link->kind(), "kernel");
    EXPECT_EQ(link->interface(End::tx), "p0");
    EXPECT_EQ(link->interface(End::rx), "p1");
    EXPECT_EQ(link->mtu(), 4000u);
    netlink::Interfaces here;
    EXPECT_EQ(link->mac(End::rx), here.get("p1").mac);
    // Sockets at two addresses of one namespace would not use the link.
    here.add_address(here.get("p0"), netlink::parse_address("", "192.0.2.1/30"));
    here.add_address(here.get("p1"), netlink::parse_address("", "192.0.2.2/30"));
    EXPECT_EQ(open_link({.spec = "p0,p1"})->ip(End::tx), "");
    EXPECT_EQ(open_link({.spec = "p0,p1"})->facts()["addresses_usable"], false);
  });
  // They are not the link's to remove.
  EXPECT_TRUE(interfaces_in(*space_).find("p0"));
}

TEST_F(InterfacePairTest, SaysWhatIsWrong) {
  expect_says(refusal("p0,nobody"), "link p0,nobody: there is no interface nobody here");
  expect_says(refusal("p0,p1"), "link p0,p1: interface p0 is switched off");
  test::switch_on(*space_, "p0");
  test::switch_on(*space_, "p1");
  expect_says(refusal("p0,p0"), "both ends are the same interface");
  expect_says(refusal("nowhere.doorbell/p0,p1"),
              "network namespace 'nowhere.doorbell': there is none of this name");
  expect_says(refusal("../x/p0,p1"), "it is no name for a namespace");
  expect_says(refusal("/p0,p1"), "names no network namespace");
  expect_says(refusal("a_name_that_is_too_long,p1"), "no name of an interface");
}

TEST_F(InterfacePairTest, PassesTheKernelsWordsOn) {
  netlink::Interfaces here = interfaces_in(*space_);
  expect_says(error_of([&] {
                here.make_veth({"p0", 1500, 1}, {"p9", 1500, 1}, space_->fd());
              }),
              "making the veth pair p0, p9: File exists");
  expect_says(error_of([&] { here.set_mtu(here.get("p0"), 100'000); }), "interface p0: an MTU of 100000");
  expect_says(error_of([&] { here.set_mtu(here.get("p0"), 100'000); }), "mtu greater than device maximum");
  expect_says(error_of([&] { (void)here.get("nobody"); }), "interface nobody: there is none");
  expect_says(error_of([&] { here.set_feature("p0", "no-such-feature", true); }),
              "the kernel knows no such feature");
  expect_says(error_of([&] { here.set_feature("p0", "tx-lockless", false); }),
              "interface p0: tx-lockless off");
  expect_says(error_of([&] { here.set_channels("p0", 64); }), "64 is not in 1..1");
  EXPECT_FALSE(here.counter("p0", "rx_packets_phy"));
  EXPECT_FALSE(here.feature("p0", "no-such-feature"));
  EXPECT_FALSE(here.find(u32{4711}));
}

TEST_F(InterfacePairTest, SetsChannels) {
  test::make_pair_in(*space_, "q0", "q1", 1500, 4);
  netlink::Interfaces here = interfaces_in(*space_);
  here.set_channels("q0", 2);
  EXPECT_EQ(here.channels("q0"), 2u);
  EXPECT_EQ(here.driver("q0"), "veth");
  EXPECT_FALSE(here.channels("lo"));
  // A driver's own counters by their names: veth has some for each queue.
  EXPECT_TRUE(here.counter("q0", "rx_queue_0_xdp_packets"));
}

TEST_F(InterfacePairTest, MovesAndRemoves) {
  const Namespace other = Namespace::create();
  netlink::Interfaces here = interfaces_in(*space_), there = interfaces_in(other);
  here.move(here.get("p1"), other.fd());
  EXPECT_FALSE(here.find("p1"));
  EXPECT_EQ(there.get("p1").mtu, 4000u);
  here.remove(here.get("p0"));
  EXPECT_FALSE(there.find("p1"));
}

}  // namespace
}  // namespace doorbell::net
