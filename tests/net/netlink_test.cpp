// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bytes of rtnetlink: what is read from answers, whole, cut short and wrong.

#include "net/links/netlink_message.hpp"

#include <gtest/gtest.h>
#include <linux/if.h>
#include <linux/if_link.h>

#include <cerrno>
#include <initializer_list>

#include "errors.hpp"
#include "net/links/netlink.hpp"

namespace doorbell::net::netlink {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;

using Bytes = std::vector<u8>;

/// A message as the kernel would send it.
Bytes message(u16 type, u16 flags, u32 sequence, const Bytes& body) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<u32>(sizeof header + body.size());
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  header.nlmsg_seq = sequence;
  Bytes all(sizeof header + (body.size() + 3) / 4 * 4);
  std::memcpy(all.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(all.data() + sizeof header, body.data(), body.size());
  return all;
}

template <class T>
Bytes bytes_of(const T& value) {
  Bytes all(sizeof value);
  std::memcpy(all.data(), &value, sizeof value);
  return all;
}

Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Bytes attribute(u16 type, const Bytes& value) {
  const u16 length = static_cast<u16>(4 + value.size());
  Bytes all = bytes_of(length) + bytes_of(type) + value;
  all.resize((all.size() + 3) / 4 * 4);
  return all;
}

Bytes text(const char* t) {
  return {reinterpret_cast<const u8*>(t), reinterpret_cast<const u8*>(t) + std::strlen(t) + 1};
}

Bytes veth_body() {
  ifinfomsg fixed{};
  fixed.ifi_index = 7;
  fixed.ifi_flags = IFF_UP | IFF_LOWER_UP;
  rtnl_link_stats64 stats{};
  stats.rx_dropped = 11;
  return bytes_of(fixed) + attribute(IFLA_IFNAME, text("v0")) + attribute(IFLA_MTU, bytes_of(u32{9000})) +
         attribute(IFLA_ADDRESS, {2, 0, 0, 0, 0, 1}) + attribute(IFLA_NUM_TX_QUEUES, bytes_of(u32{3})) +
         attribute(IFLA_NUM_RX_QUEUES, bytes_of(u32{4})) + attribute(IFLA_STATS64, bytes_of(stats)) +
         attribute(IFLA_MASTER, bytes_of(u32{9})) +
         attribute(IFLA_LINKINFO | NLA_F_NESTED, attribute(IFLA_INFO_KIND, text("veth")));
}

Bytes error_body(int code, u32 request_bytes) {
  nlmsgerr error{};
  error.error = code;
  error.msg.nlmsg_len = request_bytes;
  return bytes_of(error);
}

TEST(NetlinkRequest, HasItsLengthsAndPadding) {
  Request request(RTM_NEWLINK, NLM_F_CREATE);
  request.fixed(ifinfomsg{});
  request.text(IFLA_IFNAME, "ab");
  request.nest(IFLA_LINKINFO, [&] { request.byte(IFLA_INFO_KIND, 5); });
  const auto all = request.finish(42);
  nlmsghdr header;
  std::memcpy(&header, all.data(), sizeof header);
  EXPECT_EQ(header.nlmsg_len, all.size());
  EXPECT_EQ(header.nlmsg_seq, 42u);
  EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE);
  const auto found = attributes(all.subspan(sizeof header + sizeof(ifinfomsg)));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].value.size(), 3u);  // with its 0
  const auto inner = attributes(found[1].value);
  ASSERT_EQ(inner.size(), 1u);
  EXPECT_EQ(inner[0].value[0], 5);
}

TEST(NetlinkAnswer, AnInterface) {
  const Interface i = read_interface(veth_body());
  EXPECT_EQ(i.index, 7u);
  EXPECT_EQ(i.name, "v0");
  EXPECT_EQ(i.kind, "veth");
  EXPECT_EQ(i.mtu, 9000u);
  EXPECT_EQ(i.mac, (Mac{2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(i.tx_queues, 3u);
  EXPECT_EQ(i.rx_queues, 4u);
  EXPECT_EQ(i.master, 9u);
  EXPECT_TRUE(i.up && i.carrier && !i.loopback);
  EXPECT_EQ(i.stats.rx_dropped, 11u);
}

TEST(NetlinkAnswer, OlderAndNewerKernels) {
  const Bytes fixed = bytes_of(ifinfomsg{});
  // Fewer counters, more counters, an address of another kind of network, a name without its 0.
  EXPECT_EQ(read_interface(fixed + attribute(IFLA_STATS64, bytes_of(u64{5}))).stats.rx_packets, 5u);
  EXPECT_EQ(read_interface(fixed + attribute(IFLA_STATS64, Bytes(1000, 1))).stats.rx_bytes,
            0x0101010101010101u);
  EXPECT_EQ(read_interface(fixed + attribute(IFLA_ADDRESS, Bytes(20, 1))).mac, Mac{});
  EXPECT_EQ(read_interface(fixed + attribute(IFLA_IFNAME, {'x', 'y'})).name, "xy");
  EXPECT_EQ(read_interface(fixed + attribute(4000, Bytes(3, 1))).name, "");
}

TEST(NetlinkAnswer, CutShortAtEveryByte) {
  const Bytes whole = message(RTM_NEWLINK, 0, 1, veth_body());
  u32 refused = 0;
  for (std::size_t n = 1; n < whole.size(); ++n) {
    // Of exactly this size, so that a sanitizer sees a read beyond it.
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
    refused +=
        error_of([&] { (void)read_answer(part, 1); }).starts_with("netlink: the kernel's answer is malformed")
            ? 1
            : 0;
    const Bytes body = veth_body();
    if (n >= body.size()) continue;
    try {
      (void)read_interface({Bytes(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(n))});
    } catch (const Error&) {
      // Refused: that is an answer.
    }
  }
  EXPECT_EQ(refused, whole.size() - 1);
}

TEST(NetlinkAnswer, AcknowledgementsErrorsAndLists) {
  Answer a = read_answer(message(NLMSG_ERROR, NLM_F_CAPPED, 5, error_body(0, 16)), 5);
  EXPECT_TRUE(a.last);
  EXPECT_EQ(a.error, 0);

  const Bytes words = attribute(NLMSGERR_ATTR_MSG, text("too large"));
  a = read_answer(message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, 5, error_body(-EINVAL, 48) + words), 5);
  EXPECT_EQ(a.error, EINVAL);
  EXPECT_EQ(a.text, "too large");
  // With the request repeated in between, as older kernels have it.
  a = read_answer(message(NLMSG_ERROR, NLM_F_ACK_TLVS, 5, error_body(-EPERM, 48) + Bytes(32) + words), 5);
  EXPECT_EQ(a.error, EPERM);
  EXPECT_EQ(a.text, "too large");

  a = read_answer(
      message(RTM_NEWLINK, NLM_F_MULTI, 5, veth_body()) + message(RTM_NEWLINK, NLM_F_MULTI, 5, veth_body()),
      5);
  EXPECT_FALSE(a.last);
  EXPECT_EQ(a.bodies.size(), 2u);
  a = read_answer(message(NLMSG_DONE, NLM_F_MULTI, 5, bytes_of(0)), 5);
  EXPECT_TRUE(a.last && a.error == 0);
  a = read_answer(message(NLMSG_DONE, NLM_F_MULTI, 5, bytes_of(-EBUSY)), 5);
  EXPECT_TRUE(a.last && a.error == EBUSY);
  // A message that belongs to an earlier request is passed over.
  a = read_answer(
      message(NLMSG_ERROR, 0, 4, error_body(-EPERM, 16)) + message(NLMSG_ERROR, 0, 5, error_body(0, 16)), 5);
  EXPECT_TRUE(a.last && a.error == 0);
}

TEST(NetlinkAnswer, Malformed) {
  const auto answer = [](const Bytes& bytes) { return error_of([&] { (void)read_answer(bytes, 5); }); };
  Bytes lies = message(RTM_NEWLINK, 0, 5, Bytes(16));
  lies[0] = 8;  // shorter than its own header: it would never end
  expect_says(answer(lies), "a message of 8 bytes");
  lies[0] = 200;
  expect_says(answer(lies), "a message of 200 bytes where 32 are left");
  expect_says(answer(message(NLMSG_ERROR, 0, 5, {})), "an error has 0 of its 4 bytes");
  expect_says(answer(message(NLMSG_ERROR, NLM_F_ACK_TLVS, 5, error_body(-1, 3))),
              "whose request has no header");
  // A request said to be longer than the answer has no attributes behind it.
  EXPECT_EQ(read_answer(message(NLMSG_ERROR, NLM_F_ACK_TLVS, 5, error_body(-1, 0xffffffff)), 5).text, "");
  // No errno.
  EXPECT_EQ(read_answer(message(NLMSG_ERROR, 0, 5, error_body(-5000, 16)), 5).error, EPROTO);
  EXPECT_EQ(read_answer(message(NLMSG_ERROR, 0, 5, error_body(static_cast<int>(0x80000000), 16)), 5).error,
            EPROTO);

  const Bytes fixed = bytes_of(ifinfomsg{});
  const auto interface = [&](const Bytes& more) {
    return error_of([&] { (void)read_interface(fixed + more); });
  };
  expect_says(interface({3, 0, 1, 0}), "an attribute of 3 bytes");
  expect_says(interface({9, 0, 1, 0, 1, 2, 3, 4}), "an attribute of 9 bytes where 8 are left");
  expect_says(interface(attribute(IFLA_MTU, {1, 2})), "an MTU has 2 of its 4 bytes");
  expect_says(interface(attribute(IFLA_LINKINFO, {40, 0, 1, 0})),
              "an attribute of 40 bytes where 4 are left");
  expect_says(error_of([] { (void)read_address(Bytes(3)); }), "an address has 3 of its 8 bytes");
}

TEST(NetlinkText, Addresses) {
  const Address a = parse_address("x", "192.0.2.1/30");
  EXPECT_EQ(ip_text(a.ip), "192.0.2.1");
  EXPECT_EQ(a.prefix, 30);
  for (const char* wrong :
       {"", "192.0.2.1", "192.0.2.1/", "192.0.2.1/0", "192.0.2.1/32", "192.0.2/24", "192.0.2.256/24",
        "192.0.2.1/30x", "192.0.2.1/256", "192.0.2.1/-1", "2001:db8::1/31"}) {
    expect_says(error_of([&] { (void)parse_address("--tx-address", wrong); }),
                "--tx-address: '" + std::string(wrong) + "' is no IPv4");
  }
  EXPECT_EQ(mac_text({2, 0, 0, 0xab, 0, 1}), "02:00:00:ab:00:01");
}

TEST(NetlinkText, InterfaceNames) {
  check_interface_name("x", "enp1s0f0np0.100");
  for (const char* wrong : {"", ".", "..", "sixteen_letters_", "a/b", "a:b", "a b", "a\n"})
    expect_says(error_of([&] { check_interface_name("x", wrong); }), "no name of an interface");
}

// Needs no permission: everybody may look.
TEST(NetlinkSocket, LooksAtThisMachine) {
  Interfaces here;
  const Interface lo = here.get("lo");
  EXPECT_TRUE(lo.loopback);
  EXPECT_EQ(lo.kind, "");
  EXPECT_EQ(here.find(lo.index)->name, "lo");
  EXPECT_FALSE(here.all().empty());
  EXPECT_FALSE(here.find("doorbell_none"));
  if (lo.up) {
    const auto addresses = here.addresses(lo);
    ASSERT_FALSE(addresses.empty());
    EXPECT_EQ(ip_text(addresses.front().ip), "127.0.0.1");
    EXPECT_FALSE(addresses.front().global);
  }
}

}  // namespace
}  // namespace doorbell::net::netlink
