// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completions that lie: of what was done as an error, of what was not done yet as a success. What they do not
// lie about stays true: the order, one completion for each request, and in the end the data.
#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

constexpr u32 kBytes = 1000;  // four packets

CompletionFaults faults_of(double error, double early, u64 seed = 1) {
  return {.probability = {error, early}, .seed = seed};
}

struct Faulty : Pair {
  explicit Faulty(const CompletionFaults& faults, Service with = Service::rc, const std::string& log = {})
      : Pair(with, {}, {}, faults, log) {
    for (std::size_t i = 0; i < a.memory.size(); ++i) a.memory[i] = static_cast<u8>(i * 31 + i / 97 + 1);
  }
  Errno post(u64 id, WrOpcode opcode = WrOpcode::write, std::size_t place = 0) {
    SendRequest request = request_of(*this, opcode, id);
    request.remote_address = b.address(place);
    return a_pair->post(request, std::vector{a.sge(place, kBytes)});
  }
  [[nodiscard]] bool same(std::size_t place = 0) const {
    return std::equal(&a.memory[place], &a.memory[place + kBytes], &b.memory[place]);
  }
  [[nodiscard]] u64 injected(CompletionFault fault) const {
    return a_pair->counters().injected[static_cast<std::size_t>(fault)];
  }
};

TEST(RoceCompletionFaults, AnErrorIsOfWhatWasDone) {
  Faulty pair(faults_of(1, 0));
  ASSERT_EQ(pair.post(1), 0);
  ASSERT_EQ(pair.post(2, WrOpcode::write, 4096), 0);
  const Completion first = pair.next(pair.a), second = pair.next(pair.a);
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.status, Status::remote_operation);
  EXPECT_EQ(second.id, 2U);
  EXPECT_EQ(second.status, Status::flushed);
  EXPECT_TRUE(pair.same());
  EXPECT_EQ(pair.a_pair->state(), State::error);
  EXPECT_EQ(pair.injected(CompletionFault::error), 1U);
  EXPECT_TRUE((pair.run_for(50'000'000), pair.a.poll().empty()));
}

TEST(RoceCompletionFaults, EachAnswerOfReadsAndAtomicsMayBringOne) {
  for (const WrOpcode opcode :
       {WrOpcode::read, WrOpcode::fetch_add, WrOpcode::compare_swap, WrOpcode::send}) {
    Faulty pair(faults_of(1, 0));
    ASSERT_EQ(pair.b_pair->post_receive(9, std::vector{pair.b.sge(8192, 2000)}), 0);
    for (u64 id = 1; id <= 3; ++id) {
      const SendRequest request = request_of(pair, opcode, id);
      const bool atomic = opcode == WrOpcode::fetch_add || opcode == WrOpcode::compare_swap;
      ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, atomic ? 8 : kBytes)}), 0);
    }
    for (u64 id = 1; id <= 3; ++id) {
      const Completion got = pair.next(pair.a);
      EXPECT_EQ(got.id, id);
      EXPECT_EQ(got.status, id == 1 ? Status::remote_operation : Status::flushed);
    }
    EXPECT_TRUE((pair.run_for(50'000'000), pair.a.poll().empty()));
  }
}

/// The request that fails, of 300.
u64 failing(u64 seed, const std::string& log = {}) {
  Faulty pair(faults_of(0.02, 0, seed), Service::rc, log);
  for (u64 id = 1; id <= 300; ++id) {
    EXPECT_EQ(pair.post(id), 0);
    if (pair.next(pair.a).status != Status::success) return id;
  }
  return 0;
}

TEST(RoceCompletionFaults, FollowFromTheSeed) {
  const u64 first = failing(1);
  EXPECT_NE(first, 0U);
  EXPECT_EQ(failing(1), first);
  EXPECT_NE(failing(2), first);
}

TEST(RoceCompletionFaults, AreLogged) {
  const std::filesystem::path log =
      std::filesystem::temp_directory_path() / ("roce-completions-" + std::to_string(getpid()) + ".log");
  std::filesystem::remove(log);
  const u64 failed = failing(1, log);
  std::ifstream file(log);
  std::string line, more;
  ASSERT_TRUE(std::getline(file, line));
  EXPECT_NE(line.find(" s error completion of request " + std::to_string(failed) + " of queue pair "),
            std::string::npos)
      << line;
  EXPECT_FALSE(std::getline(file, more)) << more;
  std::filesystem::remove(log);
  EXPECT_THROW(Faulty(faults_of(1, 0), Service::rc, "/nonexistent/log"), Error);
}

TEST(RoceCompletionFaults, AnEarlyOneComesBeforeTheData) {
  Faulty pair(faults_of(0, 1));
  ASSERT_EQ(pair.post(1), 0);
  const Completion got = pair.next(pair.a);
  EXPECT_EQ(got.id, 1U);
  EXPECT_EQ(got.status, Status::success);
  EXPECT_TRUE(std::all_of(&pair.b.memory[0], &pair.b.memory[kBytes], [](u8 byte) { return byte == 0; }));
  // Who believes it, and writes the next data there, has these sent.
  std::fill_n(&pair.a.memory[0], kBytes, u8{7});
  EXPECT_TRUE(pair.run([&] { return pair.same(); }));
  EXPECT_TRUE((pair.run_for(50'000'000), pair.a.poll().empty()));
  EXPECT_EQ(pair.injected(CompletionFault::early), 1U);
  EXPECT_EQ(pair.a_pair->state(), State::rts);
}

TEST(RoceCompletionFaults, AnEarlyReadHasNoData) {
  Faulty pair(faults_of(0, 1));
  std::fill_n(&pair.b.memory[0], kBytes, u8{9});
  ASSERT_EQ(pair.post(1, WrOpcode::read), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  EXPECT_FALSE(pair.same());
  EXPECT_TRUE(pair.run([&] { return pair.same(); }));
}

TEST(RoceCompletionFaults, EarlyOnesKeepTheOrderAndLoseNothing) {
  for (const Service service : {Service::rc, Service::uc}) {
    Faulty pair(faults_of(0, 0.5), service);
    constexpr u64 kRequests = 100;
    u64 posted = 0, completed = 0;
    ASSERT_TRUE(pair.run(
        [&] {
          while (posted < kRequests && pair.post(posted + 1, WrOpcode::write, posted * 1024) == 0) ++posted;
          for (const Completion& got : pair.a.poll()) {
            EXPECT_EQ(got.id, ++completed);
            EXPECT_EQ(got.status, Status::success);
          }
          return completed == kRequests;
        },
        60'000'000'000));
    EXPECT_TRUE((pair.run_for(50'000'000), pair.a.poll().empty()));
    for (u64 i = 0; i < kRequests; ++i) EXPECT_TRUE(pair.same(i * 1024)) << i;
    EXPECT_GT(pair.injected(CompletionFault::early), 20U);
    EXPECT_LT(pair.injected(CompletionFault::early), 80U);
  }
}

TEST(RoceCompletionFaults, AnEarlyOneIsOverForThePostingProgram) {
  Faulty pair(faults_of(0, 1));
  u64 posted = 0;
  while (pair.post(posted + 1) == 0) ++posted;
  const u32 most = static_cast<u32>(posted);
  EXPECT_EQ(pair.a_pair->room(), 0U);
  for (u64 id = 1; id <= most; ++id) {
    EXPECT_EQ(pair.next(pair.a).id, id);
    EXPECT_GE(pair.a_pair->room(), 1U);
    EXPECT_EQ(pair.post(++posted), 0);
    EXPECT_EQ(pair.post(posted + 1), ENOMEM);
  }
}

TEST(RoceCompletionFaults, AnEarlyOneOfAPeerThatIsGoneIsNotTakenBack) {
  Faulty pair(faults_of(0, 1));
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  ASSERT_EQ(pair.post(1), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  ASSERT_TRUE(pair.run([&] { return pair.a_pair->state() == State::error; }, 60'000'000'000));
  EXPECT_TRUE(pair.a.poll().empty());
}

TEST(RoceCompletionFaults, UnsignalledRequestsHaveNone) {
  Faulty pair(faults_of(0, 1));
  SendRequest request = request_of(pair, WrOpcode::write);
  request.flags = 0;
  request.remote_address = pair.b.address(0);
  ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, kBytes)}), 0);
  EXPECT_TRUE(pair.run([&] { return pair.same(); }));
  EXPECT_TRUE(pair.a.poll().empty());
  EXPECT_EQ(pair.injected(CompletionFault::early), 0U);
}

}  // namespace
}  // namespace doorbell::roce::test
