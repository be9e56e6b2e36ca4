// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// submit(), complete() and cancel(): the same over an io_uring and over threads.
#include <doorbell/qdma/card.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "eventually.hpp"
#include "qdma/driver.hpp"
#include "qdma/model/card.hpp"
#include "qdma/peer/socket_channel.hpp"
#include "qdma/peer/socket_driver.hpp"
#include "qdma/server/card_server.hpp"

namespace doorbell::qdma {

namespace {

constexpr const char* kSlow = "model:bandwidth=1000000";  // a second for a megabyte
constexpr const char* kStill =
    "model:bandwidth=1000";  // a minute for 64 KiB: no transfer ends before it is cancelled

class Submit : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "io_uring" && !socket_rings_work()) GTEST_SKIP() << "no io_uring here";
    setenv("DOORBELL_QDMA_SUBMIT", GetParam(), 1);
  }
  void TearDown() override { unsetenv("DOORBELL_QDMA_SUBMIT"); }

  /// Takes `n` completions.
  static std::vector<TransferCompletion> take(TransferDescriptor& d, std::size_t n) {
    std::vector<TransferCompletion> all;
    const u64 end = wall_ns() + static_cast<u64>(doorbell::test::kWaitLimitS * 1e9);
    while (all.size() < n && wall_ns() < end) {
      std::array<TransferCompletion, 7> some;
      const u32 got = d.complete(some, 1);
      for (u32 i = 0; i < got; ++i) all.push_back(std::move(some[i]));
    }
    EXPECT_EQ(all.size(), n);
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, Submit, testing::Values("io_uring", "threads"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(Submit, EveryTransferComesBackOnceWithItsUserValueInAnyOrder) {
  Card card = Card::open("model");
  TransferDescriptor d = card.both_channels();
  EXPECT_EQ(d.submit_engine(), GetParam());
  constexpr u32 kTransfers = 32;
  constexpr u64 kEach = 64 << 10;
  Buffer out = card.create_buffer(kTransfers * kEach), in = card.create_buffer(kTransfers * kEach);
  for (u64 i = 0; i < out.bytes(); ++i) out.data()[i] = static_cast<u8>(i >> 12 ^ i);
  for (const Direction direction : {Direction::host_to_card, Direction::card_to_host}) {
    std::set<TransferId> ids;
    std::set<u64> users;
    for (u32 i = 0; i < kTransfers; ++i)
      ids.insert(d.submit(direction, direction == Direction::host_to_card ? out : in, i * kEach,
                          kDdrBase + (kTransfers - i) * kEach, kEach - i, 0, 1000 + i));
    EXPECT_EQ(ids.size(), kTransfers);
    for (const TransferCompletion& c : take(d, kTransfers)) {
      EXPECT_EQ(ids.erase(c.id), 1u);
      EXPECT_TRUE(users.insert(c.user).second);
      EXPECT_EQ(c.result.error, 0);
      EXPECT_EQ(c.result.bytes, kEach - (c.user - 1000));
    }
  }
  for (u32 i = 0; i < kTransfers; ++i)
    EXPECT_EQ(std::memcmp(in.data() + i * kEach, out.data() + i * kEach, kEach - i), 0) << i;
  std::array<TransferCompletion, 1> none;
  EXPECT_EQ(d.complete(none, 0), 0u);
}

TEST_P(Submit, ATransferOfManyCallsIsOneCompletion) {
  Card card = Card::open("model");
  TransferDescriptor d = card.both_channels();
  BalancedPolicy striped;
  striped.smallest_split = 8192;
  striped.stripe = 64 << 10;
  d.set_policy(PolicyKind::balanced, striped);
  Buffer b = card.create_buffer(1 << 20), back = card.create_buffer(1 << 20);
  for (u64 i = 0; i < b.bytes(); ++i) b.data()[i] = static_cast<u8>(i * 5 >> 4);
  static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase, b.bytes()));
  const auto wrote = take(d, 1);
  ASSERT_EQ(wrote.size(), 1u);
  EXPECT_EQ(wrote[0].result.bytes, b.bytes());
  EXPECT_GT(wrote[0].result.parts.size(), 2u);
  static_cast<void>(d.submit(Direction::card_to_host, back, 0, kDdrBase, b.bytes()));
  take(d, 1);
  EXPECT_EQ(std::memcmp(back.data(), b.data(), b.bytes()), 0);
}

TEST_P(Submit, PlainCallsAndSubmittedOnesShareADescriptor) {
  Card card = Card::open("model");
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(1 << 20);
  std::thread plain([&] {
    Buffer mine = card.create_buffer(1 << 20);
    for (u32 i = 0; i < 50; ++i)
      EXPECT_EQ(d.transfer(Direction::host_to_card, mine, 0, kDdrBase + (8 << 20), 1 << 20).error, 0);
  });
  for (u64 i = 0; i < 50; ++i)
    static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase + ((i + 16) << 20), 1 << 20));
  for (const auto& c : take(d, 50)) EXPECT_EQ(c.result.error, 0);
  plain.join();
}

TEST_P(Submit, OneMoreThanTheLimitIsEagainAndCancelledOnesSaySo) {
  Card card = Card::open(kStill);
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(1 << 20);
  std::vector<TransferId> ids;
  for (u64 i = 0; i < TransferDescriptor::kMaxSubmitted; ++i)
    ids.push_back(
        d.submit(Direction::host_to_card, b, 0, kDdrBase + (i << 16), 64 << 10, doorbell::test::kWaitLimitS));
  int refused = 0;
  try {
    static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase, 4096));
  } catch (const CardError& e) {
    refused = e.number();
  }
  EXPECT_EQ(refused, EAGAIN);
  for (const TransferId id : ids) d.cancel(id);
  for (const auto& c : take(d, ids.size())) EXPECT_EQ(c.result.error, ECANCELED);
  d.cancel(ids[0]);  // it has gone: nothing happens
  // There is room again. The other direction's channels have not begun anything that takes a minute.
  static_cast<void>(d.submit(Direction::card_to_host, b, 0, kDdrBase, 1));
  EXPECT_EQ(take(d, 1).at(0).result.error, 0);
}

TEST_P(Submit, ADeadlineEndsATransferThatIsTooSlow) {
  Card card = Card::open(kSlow);
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(8 << 20);
  static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase, 8 << 20, 0.05));
  EXPECT_EQ(take(d, 1).at(0).result.error, ETIMEDOUT);
}

TEST_P(Submit, ManyThreadsTakeEveryCompletionOnce) {
  Card card = Card::open("model");
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(1 << 20);
  constexpr u32 kEach = 100, kSubmitters = 2;
  std::array<std::atomic<u32>, kEach * kSubmitters> seen{};
  std::atomic<u32> taken{0};
  std::vector<std::thread> threads;
  for (u32 s = 0; s < kSubmitters; ++s)
    threads.emplace_back([&, s] {
      for (u32 i = 0; i < kEach; ++i)
        static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase + (u64{s * kEach + i} << 13),
                                   4096 + i, 0, s * kEach + i));
    });
  const u64 end = wall_ns() + static_cast<u64>(doorbell::test::kWaitLimitS * 1e9);
  for (u32 t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::array<TransferCompletion, 3> some;
      while (taken < kEach * kSubmitters && wall_ns() < end) {
        const u32 n = d.complete(some, 0.05);
        for (u32 i = 0; i < n; ++i) ++seen[some[i].user];
        taken += n;
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& s : seen) EXPECT_EQ(s, 1u);
}

u64 open_files() {
  u64 n = 0;
  for ([[maybe_unused]] const auto& e : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

TEST_P(Submit, DestructionWithTransfersInFlightWaitsAndLeavesNothing) {
  const u64 before = open_files();
  {
    Card card = Card::open(kSlow);
    Buffer b = card.create_buffer(8 << 20);
    TransferDescriptor d = card.both_channels();
    for (u32 i = 0; i < 16; ++i)
      static_cast<void>(
          d.submit(Direction::card_to_host, b, u64{i} << 19, kDdrBase + (u64{i} << 19), 512 << 10));
  }
  // The kernel closes a ring some time after the program has.
  EXPECT_TRUE(doorbell::test::eventually([&] { return open_files() == before; }));
}

TEST_P(Submit, AServerThatDiesEndsWhatIsInFlight) {
  auto server = std::make_unique<CardServer>(make_model_card(kSlow));
  Card card = card_over(std::make_shared<SocketDriver>(server->connect(), "server:test"));
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(8 << 20);
  for (u64 i = 0; i < 4; ++i)
    static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase + (i << 23), 8 << 20));
  server.reset();
  for (const auto& c : take(d, 4)) EXPECT_EQ(c.result.error, ENODEV);
  static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase, 1));
  EXPECT_EQ(take(d, 1).at(0).result.error, ENODEV);
}

TEST_P(Submit, WhatCannotBeIsRefusedAtOnce) {
  Card card = Card::open("model");
  TransferDescriptor d = card.both_channels();
  Buffer b = card.create_buffer(4096);
  EXPECT_THROW(static_cast<void>(d.submit(Direction::host_to_card, b, 0, kDdrBase, 0)), CardError);
  EXPECT_THROW(static_cast<void>(d.submit(Direction::host_to_card, b, 0, 0x300'0000'0000, 1)), CardError);
}

}  // namespace

}  // namespace doorbell::qdma
