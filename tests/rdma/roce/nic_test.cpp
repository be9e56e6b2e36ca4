// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NIC from its interface: each kind of request end to end, without faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <thread>

#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

void fill(Bytes& memory, u8 seed) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<u8>(seed + i * 7 + i / 251);
}

TEST(RoceNic, SendsWritesReadsAndCounts) {
  Pair pair;
  ASSERT_EQ(pair.error, 0);
  fill(pair.a.memory, 1);
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 3000)}), 0);
  ASSERT_EQ(pair.a_pair->post({.id = 1, .flags = kSignaled},
                              std::vector{pair.a.sge(100, 1000), pair.a.sge(5000, 77)}),
            0);
  const Completion received = pair.next(pair.b);
  EXPECT_EQ(received.id, 5U);
  EXPECT_EQ(received.status, Status::success);
  EXPECT_EQ(received.opcode, WcOpcode::receive);
  EXPECT_EQ(received.bytes, 1077U);
  EXPECT_TRUE(std::equal(&pair.b.memory[0], &pair.b.memory[1000], &pair.a.memory[100]));
  EXPECT_TRUE(std::equal(&pair.b.memory[1000], &pair.b.memory[1077], &pair.a.memory[5000]));
  EXPECT_EQ(pair.next(pair.a).id, 1U);

  ASSERT_EQ(pair.a_pair->post({.id = 2,
                               .opcode = WrOpcode::write,
                               .flags = kSignaled,
                               .remote_address = pair.b.address(40000),
                               .remote_key = pair.b.keys.remote_key},
                              std::vector{pair.a.sge(3, 20000)}),
            0);
  EXPECT_EQ(pair.next(pair.a).id, 2U);
  EXPECT_TRUE(std::equal(&pair.b.memory[40000], &pair.b.memory[60000], &pair.a.memory[3]));

  ASSERT_EQ(pair.a_pair->post({.id = 3,
                               .opcode = WrOpcode::read,
                               .flags = kSignaled,
                               .remote_address = pair.b.address(40001),
                               .remote_key = pair.b.keys.remote_key},
                              std::vector{pair.a.sge(60000, 19999)}),
            0);
  EXPECT_EQ(pair.next(pair.a).id, 3U);
  EXPECT_TRUE(std::equal(&pair.a.memory[60000], &pair.a.memory[79999], &pair.b.memory[40001]));

  const u64 before = 40;
  std::memcpy(&pair.b.memory[800], &before, 8);
  ASSERT_EQ(pair.a_pair->post({.id = 4,
                               .opcode = WrOpcode::fetch_add,
                               .flags = kSignaled,
                               .remote_address = pair.b.address(800),
                               .remote_key = pair.b.keys.remote_key,
                               .compare_or_add = 2},
                              std::vector{pair.a.sge(8, 8)}),
            0);
  EXPECT_EQ(pair.next(pair.a).id, 4U);
  u64 value = 0;
  std::memcpy(&value, &pair.b.memory[800], 8);
  EXPECT_EQ(value, 42U);
  std::memcpy(&value, &pair.a.memory[8], 8);
  EXPECT_EQ(value, 40U);
  EXPECT_EQ(pair.a.nic->counters().retransmitted_packets, 0U);
}

// A program in another thread that sees a completion posts at once, into the slot of the request that has
// ended.
TEST(RoceNic, ACompletedRequestHasLeftItsSlot) {
  Pair pair;
  const u32 all = pair.a_pair->room();
  for (u32 i = 0; i < all; ++i)
    ASSERT_EQ(pair.a_pair->post({.id = i,
                                 .opcode = WrOpcode::write,
                                 .flags = kSignaled,
                                 .remote_address = pair.b.address(0),
                                 .remote_key = pair.b.keys.remote_key},
                                std::vector{pair.a.sge(0, 8)}),
              0);
  ASSERT_EQ(pair.a_pair->room(), 0U);
  u32 room = 0;
  pair.a.on_completion = [&] { room = pair.a_pair->room(); };
  pair.a.completions->arm(false);
  ASSERT_TRUE(pair.run([&] { return pair.a.reports != 0; }));
  EXPECT_EQ(room, 1U);
}

// As a device writes the receiver's entry before the sender learns that its message has arrived.
TEST(RoceNic, AReceiveIsReportedBeforeItsAcknowledgementLeaves) {
  Pair pair;
  std::vector<std::string> order;
  pair.b.completions->after_each([&] { order.push_back("completion"); });
  pair.wire.fate = [&](Endpoint from, std::span<const u8>) {
    if (from == pair.b.at) order.push_back("acknowledgement");
    return Fate::pass;
  };
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 100)}), 0);
  ASSERT_EQ(pair.a_pair->post({.id = 1, .flags = kSignaled}, std::vector{pair.a.sge(0, 100)}), 0);
  EXPECT_EQ(pair.next(pair.a).id, 1U);
  EXPECT_EQ(order, (std::vector<std::string>{"completion", "acknowledgement"}));
}

// Nobody else may come for a while: a thread that serves the NIC sleeps then.
TEST(RoceNic, WorkThatComesWhileAnotherHasTheEngineIsDoneAtItsRelease) {
  Pair pair;
  std::thread poster;
  pair.a.nic->between_rounds([&] {
    poster = std::thread([&] {
      EXPECT_EQ(pair.a_pair->post({.id = 1,
                                   .opcode = WrOpcode::write,
                                   .flags = kSignaled,
                                   .remote_address = pair.b.address(0),
                                   .remote_key = pair.b.keys.remote_key},
                                  std::vector{pair.a.sge(0, 8)}),
                0);
      EXPECT_FALSE(pair.a.nic->progress());
    });
    poster.join();
  });
  EXPECT_EQ(pair.b.carrier.inbox.size(), 1U);
}

}  // namespace
}  // namespace doorbell::roce::test
