// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The thread that keeps a NIC going: whatever the program does, no packet and no timer waits for ever.
#include "rdma/roce/attendant.hpp"

#include <fcntl.h>
#include <poll.h>

#include <random>

#include "doorbell/memory_order.hpp"
#include "packet_nic.hpp"

namespace doorbell::roce {
namespace {

using doorbell::test::eventually;
using test::PacketNic;

class RoceAttendant : public ::testing::TestWithParam<CarrierKind> {
 protected:
  struct Side {
    std::unique_ptr<Carrier> carrier;
    PacketNic nic;
    Attendant attendant;
    Side(CarrierKind kind, bool echo)
        : carrier(test::carrier(kind)), nic(*carrier, echo), attendant(nic, *carrier) {}
  };
  Side near_{GetParam(), false}, far_{GetParam(), true};

  void post(u64 number) {
    near_.nic.post(far_.carrier->self(), number);
    near_.attendant.on_post();
  }
};

INSTANTIATE_TEST_SUITE_P(All, RoceAttendant,
                         ::testing::Values(CarrierKind::automatic, CarrierKind::ring, CarrierKind::udp),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

/// Neither side's program calls: the threads do it all, packet by packet. A lost wake ends this.
TEST_P(RoceAttendant, AnswersComeWhileProgramsSleep) {
  for (u64 i = 1; i <= 2000; ++i) {
    post(i);
    ASSERT_TRUE(eventually([&] { return near_.nic.received() == i; })) << i;
  }
}

/// Both programs poll for a while and stop, again and again, at any moment.
TEST_P(RoceAttendant, AnswersComeWhenPollersStop) {
  // Few polls: each one in vain gives the processor to whoever wants it.
  std::mt19937_64 random(7);
  for (u64 i = 1; i <= 300; ++i) {
    post(i);
    for (u64 polls = random() % 30; polls != 0; --polls) {
      near_.attendant.on_empty_poll();
      far_.attendant.on_empty_poll();
    }
    ASSERT_TRUE(eventually([&] { return near_.nic.received() == i; })) << i;
  }
}

TEST_P(RoceAttendant, ManyPacketsComeFromManyThreads) {
  constexpr u64 kEach = 5000;
  std::vector<std::thread> threads;
  for (u64 t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (u64 i = 0; i < kEach; ++i) {
        post(i);
        if (i % 50 == 0) near_.attendant.on_empty_poll();
        // A socket's buffer is no place for all of them.
        EXPECT_TRUE(eventually([&] { return near_.nic.received() + 1000 > i; }));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_TRUE(eventually([&] { return near_.nic.received() == 3 * kEach; })) << near_.nic.received();
}

TEST_P(RoceAttendant, SleepsWhenThereIsNothing) {
  // Until it has slept through a while.
  EXPECT_TRUE(eventually([&] {
    const u64 rounds = near_.nic.rounds();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return near_.nic.rounds() == rounds;
  }));
}

TEST_P(RoceAttendant, ADeadlineOfThePollingProgramIsKept) {
  for (int i = 0; i < 20; ++i) {
    near_.nic.set_due(wall_ns() + 3'000'000);
    near_.attendant.on_post();
    ASSERT_TRUE(eventually([&] { return near_.nic.next_due_ns() == ~u64{0}; })) << i;
  }
}

/// While a program polls, its peers need no system call to wake anybody.
TEST_P(RoceAttendant, TrustsAProgramThatPolls) {
  if (GetParam() == CarrierKind::udp) GTEST_SKIP() << "UDP has no wakes to spare";
  // One thread is both programs, so that neither waits for a processor while the other polls. Other work
  // between two polls: a poll that follows at once and in vain may give the processor away.
  const auto poll = [&] {
    near_.attendant.on_empty_poll();
    far_.attendant.on_empty_poll();
    for (const u64 until = wall_ns() + 3'000; wall_ns() < until;) cpu_relax();
  };
  u64 sent = 0;
  const auto exchange = [&] {
    post(++sent);
    const u64 limit = wall_ns() + static_cast<u64>(doorbell::test::kWaitLimitS * 1e9);
    while (near_.nic.received() != sent && wall_ns() < limit) poll();
    return near_.nic.received() == sent;
  };
  EXPECT_TRUE(eventually([&] { return exchange() && near_.attendant.trusts() != 0; }));
  // A few messages in a row, each after a pause in which the thread falls asleep if it does not trust: the
  // far side wakes nobody. A machine that takes the processor from the poller breaks a row, not every row.
  constexpr int kInARow = 5;
  EXPECT_TRUE(eventually([&] {
    for (int i = 0; i < kInARow; ++i) {
      const u64 wakes = far_.carrier->counters().wakes;
      for (const u64 until = wall_ns() + 200'000; wall_ns() < until;) poll();
      if (!exchange() || far_.carrier->counters().wakes != wakes) return false;
    }
    return true;
  }));
}

}  // namespace
}  // namespace doorbell::roce
