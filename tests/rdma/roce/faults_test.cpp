// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A connection packet by packet: each packet in turn is lost, doubled or late, in each direction, for every
// kind of request and size. Data are right, each completion comes once, and atomics are carried out once.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "rdma/roce/fake_wire.hpp"

namespace doorbell::roce::test {
namespace {

constexpr std::size_t kUsualPlace = 2048;         // of one message, at both ends
constexpr std::size_t kResults = (1 << 17) - 64;  // of atomics

struct Message {
  WrOpcode opcode{};
  u32 bytes = 0;
};

bool takes_receive(WrOpcode opcode) {
  return opcode == WrOpcode::send || opcode == WrOpcode::send_immediate ||
         opcode == WrOpcode::write_immediate;
}
bool is_atomic(WrOpcode opcode) {
  return opcode == WrOpcode::compare_swap || opcode == WrOpcode::fetch_add;
}

/// Posts the messages at once, waits for all completions, and checks everything.
class Exchange {
 public:
  explicit Exchange(std::vector<Message> messages, Service service, bool lossless = false,
                    std::size_t place = kUsualPlace)
      : pair(service), messages_(std::move(messages)), place_(place) {
    pair.wire.lossless = lossless;
    for (std::size_t i = 0; i < pair.a.memory.size(); ++i)
      pair.a.memory[i] = static_cast<u8>(i * 31 + i / 97);
    for (std::size_t i = 0; i < pair.b.memory.size(); ++i)
      pair.b.memory[i] = static_cast<u8>(i * 17 + i / 89);
    const u64 zero = 0;
    std::memcpy(&pair.b.memory[kResults], &zero, sizeof zero);
    before_a_ = pair.a.memory;
    before_b_ = pair.b.memory;
  }

  void run() {
    ASSERT_EQ(pair.error, 0);
    std::vector<u64> receives;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const auto [opcode, bytes] = messages_[i];
      SendRequest request;
      request.id = 100 + i;
      request.opcode = opcode;
      request.flags = kSignaled;
      request.immediate_or_key = static_cast<u32>(0xABCD0000 + i);
      request.remote_key = pair.b.keys.remote_key;
      request.shared_receives = pair.receives != nullptr ? pair.receives->number() : 0;
      request.remote_address = pair.b.address(is_atomic(opcode) ? kResults : i * place_);
      request.compare_or_add = opcode == WrOpcode::compare_swap ? adds_ : i + 1;
      request.swap = adds_ + 1000;
      if (opcode == WrOpcode::compare_swap) adds_ += 1000;
      if (opcode == WrOpcode::fetch_add) adds_ += i + 1;
      if (takes_receive(opcode)) {
        ASSERT_EQ(pair.post_receive(
                      200 + i, std::vector{pair.b.sge(i * place_, 300),
                                           pair.b.sge(i * place_ + 300, static_cast<u32>(place_) - 300)}),
                  0);
        receives.push_back(i);
      }
      if (opcode == WrOpcode::atomic_write) {
        std::memcpy(&request.swap, &pair.a.memory[i * place_], sizeof request.swap);
        ASSERT_EQ(pair.a_pair->post(request, {}), 0);
        continue;
      }
      const u32 first = is_atomic(opcode) ? 8 : bytes / 3;
      ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(i * place_, first),
                                                       pair.a.sge(i * place_ + first,
                                                                  is_atomic(opcode) ? 0 : bytes - first)}),
                0);
    }
    std::vector<Completion> sent, received;
    const auto add = [](std::vector<Completion>& all, const std::vector<Completion>& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    ASSERT_TRUE(pair.run(
        [&] {
          add(sent, pair.a.poll());
          add(received, pair.b.poll());
          return sent.size() >= messages_.size() && received.size() >= receives.size();
        },
        60'000'000'000))
        << sent.size() << " and " << received.size();
    // Whatever is under way still comes, and completes nothing twice.
    pair.run_for(20'000'000);
    add(sent, pair.a.poll());
    add(received, pair.b.poll());
    ASSERT_EQ(sent.size(), messages_.size());
    ASSERT_EQ(received.size(), receives.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      ASSERT_EQ(sent[i].id, 100 + i);
      ASSERT_EQ(sent[i].status, Status::success);
    }
    for (std::size_t i = 0; i < received.size(); ++i) check_receive(receives[i], received[i]);
    check_memory();
    ASSERT_EQ(pair.a_pair->state(), State::rts);
    ASSERT_EQ(pair.b_pair->state(), State::rts);
  }

  Pair pair;

 private:
  void check_receive(u64 i, const Completion& got) const {
    const auto [opcode, bytes] = messages_[i];
    ASSERT_EQ(got.id, 200 + i);
    ASSERT_EQ(got.status, Status::success);
    ASSERT_EQ(got.bytes, bytes);
    ASSERT_EQ(got.opcode,
              opcode == WrOpcode::write_immediate ? WcOpcode::receive_write_immediate : WcOpcode::receive);
    ASSERT_EQ(got.flags, opcode == WrOpcode::send ? 0 : kHasImmediate);
    ASSERT_EQ(got.immediate_or_key, opcode == WrOpcode::send ? 0 : 0xABCD0000 + i);
    ASSERT_EQ(got.source_queue_pair, pair.a_pair->number());
  }
  void check_memory() {
    Bytes a = before_a_, b = before_b_;
    u64 value = 0;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const auto [opcode, bytes] = messages_[i];
      const auto at = static_cast<std::ptrdiff_t>(i * place_);
      if (is_atomic(opcode)) {
        std::memcpy(&a[i * place_], &value, sizeof value);
        value += opcode == WrOpcode::fetch_add ? i + 1 : 1000;
      } else if (opcode == WrOpcode::read) {
        std::copy_n(before_b_.begin() + at, bytes, a.begin() + at);
      } else {
        std::copy_n(before_a_.begin() + at, bytes, b.begin() + at);
      }
    }
    std::memcpy(&b[kResults], &value, sizeof value);
    ASSERT_TRUE(a == pair.a.memory) << "the requester's memory";
    ASSERT_TRUE(b == pair.b.memory) << "the responder's memory";
  }

  std::vector<Message> messages_;
  std::size_t place_;
  Bytes before_a_, before_b_;
  u64 adds_ = 0;
};

const char* name_of(Fate fate) {
  return fate == Fate::drop ? "lost" : fate == Fate::duplicate ? "doubled" : "late";
}

/// Each packet of each direction in turn.
void each_position(const std::vector<Message>& messages, Service service, bool lossless, u32 least_packets) {
  for (const Fate fate : {Fate::drop, Fate::duplicate, Fate::swap}) {
    for (const bool from_a : {true, false}) {
      u32 packets = ~0U;
      u32 position = 0;
      for (; position < packets; ++position) {
        SCOPED_TRACE(std::string(from_a ? "request" : "answer") + " packet " + std::to_string(position) +
                     " " + name_of(fate));
        Exchange exchange(messages, service, lossless);
        u32 seen = 0;
        const Endpoint chosen = from_a ? exchange.pair.a.at : exchange.pair.b.at;
        exchange.pair.wire.fate = [&](Endpoint from, std::span<const u8>) {
          return from == chosen && seen++ == position ? fate : Fate::pass;
        };
        exchange.run();
        if (testing::Test::HasFatalFailure()) return;
        if (seen <= position) packets = position;
      }
      ASSERT_GE(position, from_a ? least_packets : 1U) << "positions tried";
    }
  }
}

class EachPacket : public testing::TestWithParam<std::tuple<Service, WrOpcode>> {};

TEST_P(EachPacket, LostDoubledOrLate) {
  const auto [service, opcode] = GetParam();
  for (const u32 bytes : {0U, 1U, kMtu - 1, kMtu, kMtu + 1, 3 * kMtu + 5}) {
    const bool fixed = is_atomic(opcode) || opcode == WrOpcode::atomic_write;
    if (fixed && bytes != 0) break;
    SCOPED_TRACE("bytes " + std::to_string(bytes));
    const u32 size = fixed ? 8 : bytes;
    each_position({{opcode, size}, {opcode, size}, {opcode, size}}, service, false, 3);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(RoceFaults, EachPacket,
                         testing::Combine(testing::Values(Service::rc, Service::xrc),
                                          testing::Values(WrOpcode::send, WrOpcode::send_immediate,
                                                          WrOpcode::write, WrOpcode::write_immediate,
                                                          WrOpcode::read, WrOpcode::compare_swap,
                                                          WrOpcode::fetch_add, WrOpcode::atomic_write)));

const std::vector<Message> kMixture = {
    {WrOpcode::read, 700},       {WrOpcode::send, 300},  {WrOpcode::fetch_add, 8},
    {WrOpcode::write, 600},      {WrOpcode::read, 256},  {WrOpcode::send_immediate, 0},
    {WrOpcode::compare_swap, 8}, {WrOpcode::read, 1000}, {WrOpcode::write_immediate, 257},
    {WrOpcode::fetch_add, 8},    {WrOpcode::send, 1300}, {WrOpcode::atomic_write, 8},
    {WrOpcode::read, 300}};

class Mixture : public testing::TestWithParam<Service> {};

TEST_P(Mixture, EachPacket) {
  each_position(kMixture, GetParam(), false, 11);
}
TEST_P(Mixture, EachPacketOnAPathSaidToLoseNothing) {
  each_position(kMixture, GetParam(), true, 11);
}

TEST_P(Mixture, ManyAtOnce) {
  u64 lost = 0, again = 0;
  for (u32 seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Exchange exchange(kMixture, GetParam(), seed % 3 == 0);
    std::mt19937 random(seed);
    exchange.pair.wire.fate = [&](Endpoint, std::span<const u8>) {
      const u32 drawn = static_cast<u32>(random() % 100);
      if (drawn < 6) ++lost;
      return drawn < 6 ? Fate::drop : drawn < 12 ? Fate::duplicate : drawn < 18 ? Fate::swap : Fate::pass;
    };
    exchange.run();
    if (HasFatalFailure()) return;
    again += exchange.pair.a.nic->counters().retransmitted_packets;
  }
  EXPECT_GT(lost, 300U);
  EXPECT_GT(again, 300U);
}

TEST_P(Mixture, ManyInLongMessages) {
  // 79 packets each: several parts of a READ, several windows of a WRITE.
  const std::vector<Message> messages = {{WrOpcode::read, 20000},
                                         {WrOpcode::write, 20001},
                                         {WrOpcode::read, 19999},
                                         {WrOpcode::send, 20002},
                                         {WrOpcode::fetch_add, 8}};
  for (u32 seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Exchange exchange(messages, GetParam(), seed % 3 == 0, 24000);
    std::mt19937 random(seed);
    exchange.pair.wire.fate = [&](Endpoint, std::span<const u8>) {
      const u32 drawn = static_cast<u32>(random() % 100);
      return drawn < 3 ? Fate::drop : drawn < 6 ? Fate::duplicate : drawn < 9 ? Fate::swap : Fate::pass;
    };
    exchange.run();
    if (HasFatalFailure()) return;
  }
}

TEST_P(Mixture, NothingIsSentAgainWithoutALoss) {
  for (const bool lossless : {false, true}) {
    Exchange exchange(kMixture, GetParam(), lossless);
    exchange.run();
    EXPECT_EQ(exchange.pair.a.nic->counters().retransmitted_packets, 0U);
    EXPECT_EQ(exchange.pair.b.nic->counters().duplicates, 0U);
    EXPECT_EQ(exchange.pair.b.nic->counters().naks_sent[0], 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(RoceFaults, Mixture, testing::Values(Service::rc, Service::xrc));

}  // namespace
}  // namespace doorbell::roce::test
