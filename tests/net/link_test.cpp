// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Links by their names, lo, and veth pairs that live as long as a run.

#include "net/link.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "errors.hpp"
#include "net/scratch.hpp"
#include "options/setting.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::eventually;
using doorbell::test::expect_says;
using test::expect_crossing;
using test::Forked;

std::string kind_of(const std::string& spec) {
  for (const LinkKind& kind : link_kinds())
    if (kind.accepts({.spec = spec})) return kind.name;
  return "none";
}

TEST(LinkNames, EachTextHasOneKind) {
  for (const auto& [spec, kind] :
       std::initializer_list<std::pair<const char*, const char*>>{{"lo", "lo"},
                                                                  {"veth", "veth"},
                                                                  {"veth:mtu=1500", "veth"},
                                                                  {"ring", "ring"},
                                                                  {"memif", "memif"},
                                                                  {"0000:01:00.0,0000:01:00.1", "pci"},
                                                                  {"01:00.0,0a:1f.7", "pci"},
                                                                  {"eth0,eth1", "interfaces"},
                                                                  {"db_tx/eth0,db_rx/eth1", "interfaces"},
                                                                  {"veth0,veth1", "interfaces"},
                                                                  {"vethx", "none"},
                                                                  {"", "none"},
                                                                  {",", "none"},
                                                                  {"eth0,", "none"},
                                                                  {"eth0", "none"},
                                                                  {"a,b,c", "none"},
                                                                  {"0000:01:00.0", "none"},
                                                                  {"0000:01:00.0,eth1", "none"},
                                                                  {"0000:01:00.0,0000:01:00", "none"}}) {
    EXPECT_EQ(kind_of(spec), kind) << spec;
  }
  const std::string said = error_of([] { (void)open_link({.spec = "vethx"}); });
  expect_says(said, "link 'vethx': no link has this name");
  Setting::name_by_options();
  expect_says(error_of([] { (void)open_link({.spec = "vethx"}); }), "--link 'vethx': ");
  Setting::name_by_options(false);
  for (const LinkKind& kind : link_kinds()) expect_says(said, kind.syntax);
}

TEST(LinkNames, LinksWithoutInterfaces) {
  for (const char* spec : {"ring", "memif", "0000:01:00.0,0000:01:00.1"}) {
    const auto link = open_link({.spec = spec});
    EXPECT_EQ(link->name(), spec);
    EXPECT_EQ(link->kind(), spec[0] == '0' ? "hardware" : "model");
    EXPECT_EQ(link->interface(End::tx) + link->ip(End::rx), "");
    bool ran = false;
    link->in(End::rx, [&] { ran = true; });
    EXPECT_TRUE(ran);
  }
  expect_says(error_of([] { (void)open_link({.spec = "0000:01:00.0,0000:01:00.0"}); }), "the same function");
}

TEST(LoLink, BothEndsAreTheLoopbackInterface) {
  const auto here = Namespace::current();
  if (!interfaces_in(here).get("lo").up) GTEST_SKIP() << "lo is switched off here";
  const auto link = open_link({});
  EXPECT_EQ(link->name(), "lo");
  EXPECT_EQ(link->kind(), "kernel");
  EXPECT_EQ(link->ip(End::tx), "127.0.0.1");
  EXPECT_EQ(link->interface(End::rx), "lo");
  EXPECT_GE(link->mtu(), 16384u);
  EXPECT_TRUE(link->facts()["tx"]["namespace"].is_null());
  EXPECT_EQ(link->interface_drops(End::tx), link->interface_drops(End::tx));
}

TEST(LoLink, SaysWhenItIsOff) {
  NEEDS_NAMESPACES();
  Namespace::create().run([] { expect_says(error_of([] { (void)open_link({}); }), "switched off here"); });
}

class VethLinkTest : public testing::Test {
 protected:
  void SetUp() override { NEEDS_NAMESPACES(); }
};

TEST_F(VethLinkTest, CarriesDatagramsBetweenTwoNamespaces) {
  const auto link = open_link({.spec = "veth", .queues = 3});
  EXPECT_EQ(link->name(), "veth");
  EXPECT_EQ(link->kind(), "kernel");
  EXPECT_EQ(link->ip(End::tx), "192.0.2.1");
  EXPECT_EQ(link->ip(End::rx), "192.0.2.2");
  EXPECT_EQ(link->mtu(), 9000u);
  EXPECT_NE(link->mac(End::tx), link->mac(End::rx));
  EXPECT_NE(link->mac(End::tx), Mac{});
  expect_crossing(*link);
  const auto facts = link->facts();
  EXPECT_EQ(facts["tx"]["driver"], "veth");
  EXPECT_EQ(facts["tx"]["tx_queues"], 3);
  EXPECT_EQ(facts["rx"]["rx_queues"], 3);
  EXPECT_EQ(facts["tx"]["gro"], false);
  EXPECT_EQ(facts["rx"]["gro"], true);
  EXPECT_EQ(facts["tx"]["tx_udp_segmentation"], true);
  EXPECT_NE(facts["tx"]["namespace"], facts["rx"]["namespace"]);
  // This process' own namespace has seen nothing of it.
  EXPECT_FALSE(interfaces_in(Namespace::current()).find(link->interface(End::tx)));
}

TEST_F(VethLinkTest, RunsCodeInsideAndPassesErrorsOn) {
  const auto link = open_link({.spec = "veth"});
  const auto space = [] { return Namespace::current().id(); };
  u64 tx = 0, rx = 0;
  link->in(End::tx, [&] { tx = space(); });
  link->in(End::rx, [&] {
    rx = space();
    // Already inside: on the same thread.
    const auto outer = std::this_thread::get_id();
    link->in(End::rx, [&] { EXPECT_EQ(std::this_thread::get_id(), outer); });
    link->in(End::tx, [&] { EXPECT_EQ(space(), tx); });
  });
  EXPECT_NE(tx, rx);
  EXPECT_NE(space(), tx);
  EXPECT_EQ(error_of([&] { link->in(End::rx, [] { throw Error("this", "why", "hint"); }); }),
            "this: why / hint");
}

TEST_F(VethLinkTest, TakesKeys) {
  const auto link = open_link({.spec = "veth:mtu=1500,gro=off,gso=off"});
  EXPECT_EQ(link->mtu(), 1500u);
  const auto facts = link->facts();
  EXPECT_EQ(facts["rx"]["gro"], false);
  EXPECT_EQ(facts["tx"]["tx_udp_segmentation"], false);
  EXPECT_EQ(facts["rx"]["tx_udp_segmentation"], true);
  expect_crossing(*link);
  expect_crossing(*open_link({.spec = "veth:mtu=65535"}));
  expect_crossing(*open_link({.spec = "veth:mtu=576"}));
}

TEST(VethSpec, RefusesWhatItDoesNotKnow) {
  const auto said = [](const char* spec) { return error_of([&] { (void)parse_veth_spec(spec); }); };
  expect_says(said("veth:mtu=575"), "link veth: mtu");
  expect_says(said("veth:mtu=65536"), "576..65535");
  expect_says(said("veth:gro=maybe"), "on, off");
  expect_says(said("veth:mtuu=1500"), "mtu");
  expect_says(error_of([] { (void)open_link({.spec = "veth", .queues = 0}); }),
              "0 queues are not in 1..1024");
  expect_says(error_of([] { (void)open_link({.spec = "veth", .queues = 1025}); }), "1025 queues");
}

/// Named namespaces but those of tests that run beside (kept_scratch.hpp).
std::vector<std::string> named_namespaces() {
  auto names = names_in(kNamespaceFolder);
  std::erase_if(names, [](const std::string& name) { return name.starts_with("doorbell-test-"); });
  return names;
}

TEST_F(VethLinkTest, IsRemovedWithItsObject) {
  auto link = open_link({.spec = "veth"});
  // A socket keeps the namespace, and would keep the pair as well.
  std::optional<netlink::Interfaces> there;
  link->in(End::rx, [&] { there.emplace(); });
  ASSERT_TRUE(there->find("db_rx"));
  const auto names = named_namespaces();
  link.reset();
  EXPECT_FALSE(there->find("db_rx"));
  EXPECT_EQ(there->all().size(), 1u);  // lo
  EXPECT_EQ(named_namespaces(), names);
}

TEST_F(VethLinkTest, TwoAtATimeDoNotMeet) {
  const auto a = open_link({.spec = "veth"}), b = open_link({.spec = "veth"});
  const Descriptor at_a = test::socket_at(*a, End::rx, 18600), at_b = test::socket_at(*b, End::rx, 18600);
  const Descriptor from_b = test::socket_at(*b, End::tx, 18601);
  ASSERT_TRUE(test::send_to(from_b, "192.0.2.2", 18600, "b"));
  EXPECT_EQ(test::receive_from(at_b), "b");
  expect_crossing(*open_link({.spec = "veth"}));
  const Descriptor from_a = test::socket_at(*a, End::tx, 18601);
  ASSERT_TRUE(test::send_to(from_a, "192.0.2.2", 18600, "a"));
  // The first that arrives is its own: b's datagram, sent before, went elsewhere.
  EXPECT_EQ(test::receive_from(at_a), "a");
}

TEST_F(VethLinkTest, KilledProgramLeavesNothing) {
  const auto names = named_namespaces();
  Forked child([](int pipe) {
    const auto link = open_link({.spec = "veth"});
    Forked::say(pipe, link->facts()["tx"]["namespace"].get<std::string>());
    pause();
    return 0;
  });
  const std::string space = child.line();
  ASSERT_TRUE(space.starts_with("/proc/")) << space;
  // An interface of this process whose other end lies in the child's namespace: when that goes, it goes.
  const Namespace scratch = Namespace::create();
  netlink::Interfaces here = interfaces_in(scratch);
  {
    const Descriptor theirs(open(space.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_GE(theirs.get(), 0) << space << ": " << strerror(errno);
    here.make_veth({"witness", 1500, 1}, {"probe", 1500, 1}, theirs.get());
  }
  ASSERT_TRUE(here.find("witness"));
  // A second run beside it works and ends.
  expect_crossing(*open_link({.spec = "veth"}));
  EXPECT_TRUE(here.find("witness"));
  EXPECT_EQ(child.end(SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !here.find("witness"); }));
  EXPECT_EQ(named_namespaces(), names);
}

TEST_F(VethLinkTest, CountsDropsExactly) {
  const auto link = open_link({.spec = "veth"});
  const u64 tx = link->interface_drops(End::tx), rx = link->interface_drops(End::rx);
  link->in(End::rx, [] {
    netlink::Interfaces there;
    there.set_mtu(there.get("db_rx"), 1500);
  });
  // Longer than what the receiving end takes now. Each drop is counted at both ends of a pair.
  const Descriptor from = test::socket_at(*link, End::tx, 18600);
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(test::send_to(from, link->ip(End::rx), 18600, std::string(5000, 'x')));
  EXPECT_EQ(link->interface_drops(End::tx) - tx, 10u);
  EXPECT_EQ(link->interface_drops(End::rx) - rx, 10u);
}

TEST_F(VethLinkTest, NoPacketsButItsOwn) {
  const auto link = open_link({.spec = "veth"});
  link->in(End::rx, [] {
    netlink::Interfaces there;
    // IPv6 has no address to announce, and ARP nobody to ask for.
    for (const netlink::Address& a : there.addresses(there.get("db_rx"))) EXPECT_TRUE(a.ipv4);
  });
}

}  // namespace
}  // namespace doorbell::net
