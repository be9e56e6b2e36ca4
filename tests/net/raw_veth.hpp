// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A veth pair for the tests of engines that use the kernel, and a second sender of frames on it.
#pragma once

#include <gtest/gtest.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/socket.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/link.hpp"
#include "net/links/namespaces.hpp"
#include "net/links/netlink.hpp"
#include "net/stream.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::test_packets {

/// One pair of two queues a suite. Cases skip where it cannot be had.
class OnVeth : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (const BackendStatus s = namespaces_status(); !s.usable) {
      missing_ = s.detail;
      return;
    }
    enter_user_namespace_if_needed();
    link_ = open_link({.spec = "veth", .queues = 2});
  }
  static void TearDownTestSuite() { link_.reset(); }
  void SetUp() override {
    if (!missing_.empty()) GTEST_SKIP() << "no veth pair: " << missing_;
  }

  [[nodiscard]] static Link& link() { return *link_; }
  /// The count of packets that the two interfaces have dropped since the pair was made.
  [[nodiscard]] static u64 interface_drops() {
    return link_->interface_drops(End::tx) + link_->interface_drops(End::rx);
  }
  /// Switches the sending end's interface on or off.
  static void set_up(bool up) {
    link_->in(End::tx, [&] {
      netlink::Interfaces i;
      i.set_up(i.get(link_->interface(End::tx)), up);
    });
  }
  /// Sends a frame as it is, beside the stream.
  static void inject(std::span<const u8> frame) {
    link_->in(End::tx, [&] {
      const Descriptor s(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      ASSERT_GE(s.get(), 0);
      sockaddr_ll to{};
      to.sll_family = AF_PACKET;
      to.sll_ifindex = static_cast<int>(if_nametoindex(link_->interface(End::tx).c_str()));
      ASSERT_EQ(
          sendto(s.get(), frame.data(), frame.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to),
          static_cast<ssize_t>(frame.size()));
    });
  }

 private:
  static inline std::unique_ptr<Link> link_;
  static inline std::string missing_;
};

[[nodiscard]] inline StreamRequest stream_request(u32 bytes, u32 flows = 1, u32 queues = 1) {
  StreamRequest r;
  r.payload_bytes = bytes;
  r.flows = flows;
  r.rx_queues = queues;
  r.socket_bytes = 8u << 20;
  return r;
}

}  // namespace doorbell::net::test_packets
