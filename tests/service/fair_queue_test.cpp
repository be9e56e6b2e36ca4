// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whose blocking call comes next.
#include "service/fair_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <utility>

namespace doorbell::service {
namespace {

/// Calls in the order in which they were started.
class Started final : public Workers {
 public:
  void run(std::function<void()> work, std::function<void()> done) override {
    work();
    ending.push_back(std::move(done));
  }
  void end_one() {
    const auto done = std::move(ending.front());
    ending.pop_front();
    done();
  }
  std::deque<std::function<void()>> ending;
};

struct FairQueueTest : testing::Test {
  Started workers;
  FairQueue queue{workers, {.control = 4, .host_buffers = 4, .transfers = 8, .transfers_per_client = 2}};
  std::string started;  // a letter a call

  FairQueue::Ticket add(Caller caller, char letter, Lane lane = Lane::transfer) {
    return queue.add(
        caller, lane, [this, letter] { started += letter; }, [] {});
  }
  void end_all() {
    while (!workers.ending.empty()) workers.end_one();
  }
};

TEST_F(FairQueueTest, AUserWithManyClientsLeavesThreadsToOthers) {
  for (u64 client = 1; client <= 14; ++client)
    for (int i = 0; i < 4; ++i) add({.user = 1, .client = client}, 'a');
  EXPECT_EQ(started, "aaaaaa");  // three quarters of the threads
  add({.user = 2, .client = 20}, 'b');
  EXPECT_EQ(started, "aaaaaab");
  add({.user = 3, .client = 21}, 'c');
  EXPECT_EQ(started, "aaaaaabc");
  end_all();
  EXPECT_EQ(started.size(), 14u * 4 + 2);
  EXPECT_EQ(queue.running() + queue.waiting(), 0u);
}

TEST_F(FairQueueTest, UsersTakeTurnsAndThenTheirClients) {
  for (int i = 0; i < 4; ++i) add({.user = 9, .client = 90}, 'x', Lane::host_buffer);
  EXPECT_EQ(started, "x");  // one at a time of each client
  started.clear();
  for (u64 client = 1; client <= 3; ++client) {
    add({.user = 1, .client = client}, 'a', Lane::host_buffer);
    add({.user = 1, .client = client}, 'A', Lane::host_buffer);
  }
  add({.user = 2, .client = 8}, 'b', Lane::host_buffer);
  const std::string first = started;
  end_all();
  // A second user's call comes no later than the next turn, whatever the first one has waiting.
  EXPECT_LE(started.find('b'), first.size() + 1) << started;
  EXPECT_EQ(std::ranges::count(started, 'a') + std::ranges::count(started, 'A'), 6);
}

TEST_F(FairQueueTest, WhatHasNotBegunCanBeWithdrawn) {
  const Caller caller{.user = 1, .client = 1};
  add(caller, 'a'), add(caller, 'a');
  const FairQueue::Ticket third = add(caller, 'b');
  EXPECT_EQ(queue.waiting(), 1u);
  EXPECT_FALSE(queue.withdraw({.user = 2, .client = 1}, Lane::transfer, third));
  EXPECT_TRUE(queue.withdraw(caller, Lane::transfer, third));
  EXPECT_FALSE(queue.withdraw(caller, Lane::transfer, third));
  end_all();
  EXPECT_EQ(started, "aa");
}

TEST(FairQueueSmall, OneThreadIsEnough) {
  Started workers;
  FairQueue queue(workers, {.control = 1, .host_buffers = 1, .transfers = 1, .transfers_per_client = 1});
  int began = 0;
  for (uid_t user = 1; user <= 3; ++user)
    queue.add(
        {user, user}, Lane::transfer, [&] { ++began; }, [] {});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_EQ(began, i);
    workers.end_one();
  }
}

}  // namespace
}  // namespace doorbell::service
