// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// XRC: a packet names the shared receive queue that it is for, which has the receives, the completion queue
// and the protection domain.
#include <gtest/gtest.h>

#include <cerrno>

#include "rdma/roce/fake_wire.hpp"
#include "rdma/roce/states.hpp"

namespace doorbell::roce::test {
namespace {

constexpr u8 kUntouched = 0xA5;
constexpr u32 kOtherDomain = 8;  // of memory

/// The first NIC has data, the second one nothing yet.
struct Xrc : Pair {
  Xrc() : Pair(Service::xrc) {
    for (std::size_t i = 0; i < a.memory.size(); ++i) a.memory[i] = static_cast<u8>(i * 31 + i / 97);
    std::fill(b.memory.begin(), b.memory.end(), kUntouched);
  }
  Errno send(u32 receives_number, u32 bytes, WrOpcode opcode = WrOpcode::send, std::size_t to = 1024) const {
    SendRequest request = request_of(*this, opcode);
    request.shared_receives = receives_number;
    request.remote_address = b.address(to);
    return a_pair->post(request, std::vector{a.sge(0, bytes)});
  }
  [[nodiscard]] bool arrived(std::size_t at, std::size_t bytes) const {
    return std::equal(b.memory.begin() + static_cast<std::ptrdiff_t>(at),
                      b.memory.begin() + static_cast<std::ptrdiff_t>(at + bytes), a.memory.begin());
  }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(b.memory, [](u8 byte) { return byte == kUntouched; });
  }
  /// A packet to the second NIC as if it were the first one's.
  void inject(Operation operation, u32 receives_number, std::size_t bytes, u32 number, u32 length) {
    Headers h;
    h.service = Service::xrc;
    h.operation = operation;
    h.queue_pair = b_pair->number();
    h.psn = psn_after(kFirstPsn, number);
    h.wants_ack = true;
    h.shared_receives = receives_number;
    h.range = {.address = b.address(1024), .key = b.keys.remote_key, .length = length};
    Bytes packet(kLongestHeaders + bytes + 4);
    const std::size_t headers = encode(h, bytes, packet.data());
    std::fill_n(packet.begin() + static_cast<std::ptrdiff_t>(headers), bytes, u8{0xEE});
    packet.resize(headers + bytes + pad_bytes(bytes));
    b.carrier.inbox.emplace_back(a.at, packet);
    b.nic->round_at(now);
  }
  [[nodiscard]] u64 refusals(NakCode code) const {
    return b.nic->counters().naks_sent[static_cast<std::size_t>(code)];
  }
};

TEST(RoceXrc, OneConnectionServesSeveralReceiveQueues) {
  Xrc pair;
  ASSERT_EQ(pair.error, 0);
  const auto second = pair.b.make_receives(Pair::kXrcDomain);
  ASSERT_NE(second->number(), pair.receives->number());
  std::unique_ptr<CompletionQueue> own;
  ASSERT_EQ(pair.b.nic->make_completion_queue(8, own), 0);
  std::unique_ptr<SharedReceiveQueue> third;
  ASSERT_EQ(pair.b.nic->make_shared_receive_queue({.protection_domain = Host::kDomain,
                                                   .requests = 4,
                                                   .sges = 1,
                                                   .completions = own.get(),
                                                   .xrc_domain = Pair::kXrcDomain},
                                                  third),
            0);
  ASSERT_EQ(pair.receives->post(1, std::vector{pair.b.sge(0, 1000)}), 0);
  ASSERT_EQ(second->post(2, std::vector{pair.b.sge(2000, 1000)}), 0);
  ASSERT_EQ(third->post(3, std::vector{pair.b.sge(4000, 1000)}), 0);
  ASSERT_EQ(pair.send(third->number(), 900), 0);
  ASSERT_EQ(pair.send(second->number(), 800), 0);
  ASSERT_EQ(pair.send(pair.receives->number(), 700), 0);
  pair.run_for(5'000'000);
  for (u32 i = 0; i < 3; ++i) EXPECT_EQ(pair.next(pair.a).status, Status::success);
  const auto got = pair.b.poll();
  ASSERT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0].id, 2U);
  EXPECT_EQ(got[1].id, 1U);
  EXPECT_EQ(got[0].queue_pair, pair.b_pair->number());
  EXPECT_EQ(got[0].source_queue_pair, pair.a_pair->number());
  std::vector<Completion> other(2);
  ASSERT_EQ(own->poll(other), 1U);
  EXPECT_EQ(other[0].id, 3U);
  EXPECT_EQ(other[0].bytes, 900U);
  EXPECT_TRUE(pair.arrived(0, 700) && pair.arrived(2000, 800) && pair.arrived(4000, 900));
}

TEST(RoceXrc, AnEmptyQueueHasThePeerTryAgain) {
  Xrc pair;
  const auto second = pair.b.make_receives(Pair::kXrcDomain);
  ASSERT_EQ(second->post(2, std::vector{pair.b.sge(2000, 1000)}), 0);
  ASSERT_EQ(second->set_limit(1), 0);
  ASSERT_EQ(pair.send(pair.receives->number(), 700), 0);
  pair.run_for(3'000'000);
  EXPECT_TRUE(pair.a.poll().empty());
  EXPECT_GT(pair.b.nic->counters().rnr_sent, 0U);
  EXPECT_TRUE(pair.untouched());
  ASSERT_EQ(pair.receives->post(1, std::vector{pair.b.sge(0, 1000)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  EXPECT_EQ(pair.next(pair.b).id, 1U);
  EXPECT_TRUE(pair.arrived(0, 700));
  // The other one's receive is still there, and its limit was not crossed.
  EXPECT_FALSE(pair.b.was_told(Event::srq_limit));
  ASSERT_EQ(pair.send(second->number(), 500), 0);
  EXPECT_EQ(pair.next(pair.b).id, 2U);
  EXPECT_TRUE(pair.b.was_told(Event::srq_limit));
}

/// Which queue a request may not name.
class XrcStrangers : public testing::TestWithParam<std::tuple<bool, WrOpcode>> {};

TEST_P(XrcStrangers, AreRefusedAndChangeNothing) {
  const auto [exists, opcode] = GetParam();
  Xrc pair;
  const auto stranger = pair.b.make_receives(Pair::kXrcDomain + 1);
  ASSERT_EQ(stranger->post(9, std::vector{pair.b.sge(0, 1000)}), 0);
  ASSERT_EQ(pair.receives->post(1, std::vector{pair.b.sge(2000, 1000)}), 0);
  const u32 number = exists ? stranger->number() : stranger->number() ^ 0x80'0000;
  const bool atomic = opcode == WrOpcode::fetch_add;
  ASSERT_EQ(pair.send(number, atomic ? 8 : 700, opcode), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::remote_access);
  EXPECT_EQ(pair.refusals(NakCode::remote_access), 1U);
  EXPECT_TRUE(pair.b.was_told(Event::qp_access_error));
  EXPECT_EQ(pair.b_pair->state(), State::error);
  EXPECT_EQ(pair.a_pair->state(), State::error);
  EXPECT_TRUE(pair.untouched());
  // No receive was taken, by either.
  EXPECT_TRUE(pair.b.poll().empty());
}

INSTANTIATE_TEST_SUITE_P(RoceXrc, XrcStrangers,
                         testing::Combine(testing::Bool(),
                                          testing::Values(WrOpcode::send, WrOpcode::write, WrOpcode::read,
                                                          WrOpcode::write_immediate, WrOpcode::fetch_add)));

TEST(RoceXrc, MemoryIsOfTheReceiveQueuesProtectionDomain) {
  for (const WrOpcode opcode : {WrOpcode::write, WrOpcode::read, WrOpcode::fetch_add, WrOpcode::send}) {
    Xrc pair;
    // A queue of the right XRC domain, and of another protection domain than the memory.
    const auto other = pair.b.make_receives(Pair::kXrcDomain, kOtherDomain);
    ASSERT_EQ(other->post(1, std::vector{pair.b.sge(0, 1000)}), 0);
    ASSERT_EQ(pair.send(other->number(), opcode == WrOpcode::fetch_add ? 8 : 100, opcode), 0);
    const Status expected = opcode == WrOpcode::send ? Status::remote_operation : Status::remote_access;
    EXPECT_EQ(pair.next(pair.a).status, expected);
    EXPECT_TRUE(pair.untouched());
    const auto got = pair.b.poll();
    ASSERT_EQ(got.size(), opcode == WrOpcode::send ? 1U : 0U);
    for (const Completion& one : got) EXPECT_EQ(one.status, Status::local_protection);
  }
}

TEST(RoceXrc, AMessageIsForOneReceiveQueue) {
  for (const bool write : {false, true}) {
    Xrc pair;
    const auto second = pair.b.make_receives(Pair::kXrcDomain);
    for (auto* queue : {pair.receives.get(), second.get()})
      ASSERT_EQ(queue->post(queue->number(), std::vector{pair.b.sge(8192, 1000)}), 0);
    pair.inject(write ? Operation::write_first : Operation::send_first, pair.receives->number(), kMtu, 0,
                300);
    EXPECT_EQ(pair.b_pair->state(), State::rts);
    const Bytes before = pair.b.memory;
    pair.inject(write ? Operation::write_last : Operation::send_last, second->number(), 44, 1, 300);
    EXPECT_EQ(pair.refusals(NakCode::invalid_request), 1U);
    EXPECT_EQ(pair.b_pair->state(), State::error);
    EXPECT_TRUE(before == pair.b.memory);
    const auto got = pair.b.poll();
    ASSERT_EQ(got.size(), write ? 0U : 1U);
    for (const Completion& one : got) EXPECT_EQ(one.status, Status::flushed);
  }
}

TEST(RoceXrc, AReceiveQueueMayEndInTheMiddleOfAMessage) {
  Xrc pair;
  ASSERT_EQ(pair.receives->post(1, std::vector{pair.b.sge(0, 1000)}), 0);
  const u32 number = pair.receives->number();
  pair.inject(Operation::send_first, number, kMtu, 0, 0);
  pair.receives.reset();
  const Bytes before = pair.b.memory;
  pair.inject(Operation::send_last, number, 44, 1, 0);
  EXPECT_EQ(pair.refusals(NakCode::remote_access), 1U);
  EXPECT_EQ(pair.b_pair->state(), State::error);
  EXPECT_TRUE(before == pair.b.memory);
  EXPECT_TRUE(pair.b.poll().empty());
}

TEST(RoceXrc, EachHalfDoesItsOwn) {
  Xrc pair;
  EXPECT_EQ(pair.a_pair->post_receive(1, {}), EINVAL);
  EXPECT_EQ(pair.b_pair->post_receive(1, {}), EINVAL);
  EXPECT_EQ(pair.b_pair->post(request_of(pair, WrOpcode::send), {}), EINVAL);
  EXPECT_EQ(pair.send(kMask24 + 1, 10), EINVAL);
  // A request to the requester, and an answer to the responder.
  for (const bool request : {true, false}) {
    Host& to = request ? pair.a : pair.b;
    Headers h;
    h.service = Service::xrc;
    h.operation = request ? Operation::send_only : Operation::acknowledge;
    h.queue_pair = (request ? pair.a_pair : pair.b_pair)->number();
    h.psn = kFirstPsn;
    h.shared_receives = pair.receives->number();
    Bytes packet(kLongestHeaders);
    packet.resize(encode(h, 0, packet.data()));
    to.carrier.inbox.emplace_back(request ? pair.b.at : pair.a.at, packet);
    to.nic->round_at(pair.now);
    EXPECT_EQ(to.nic->counters().dropped, 1U);
    EXPECT_EQ(to.nic->counters().packets_sent, 0U);
  }
  // RC's packets are none of XRC's.
  Headers h;
  h.queue_pair = pair.b_pair->number();
  h.psn = kFirstPsn;
  Bytes packet(kLongestHeaders);
  packet.resize(encode(h, 0, packet.data()));
  pair.b.carrier.inbox.emplace_back(pair.a.at, packet);
  pair.b.nic->round_at(pair.now);
  EXPECT_EQ(pair.b.nic->counters().dropped, 2U);
  EXPECT_EQ(pair.b_pair->state(), State::rts);
}

TEST(RoceXrc, AQueuePairIsMadeAsOneHalf) {
  Xrc pair;
  std::unique_ptr<QueuePair> made;
  const auto make = [&](QueuePairOptions options) {
    made.reset();
    return pair.b.nic->make_queue_pair(options, made);
  };
  CompletionQueue* queue = pair.b.completions.get();
  EXPECT_EQ(make({.service = Service::xrc, .send_completions = queue, .receive_completions = queue}), EINVAL);
  EXPECT_EQ(make({.half = Half::requester, .send_completions = queue, .receive_completions = queue}), EINVAL);
  EXPECT_EQ(make({.service = Service::xrc, .half = Half::requester}), EINVAL);
  EXPECT_EQ(make({.service = Service::xrc,
                  .half = Half::requester,
                  .send_completions = queue,
                  .shared_receives = pair.receives.get()}),
            EINVAL);
  EXPECT_EQ(make({.service = Service::xrc, .half = Half::requester, .send_completions = queue}), 0);
  EXPECT_EQ(make({.service = Service::xrc, .half = Half::responder, .xrc_domain = 3}), 0);
}

TEST(RoceXrc, EachHalfNeedsItsAttributes) {
  constexpr u32 kPeer = kSetState | kSetPeer | kSetMtu | kSetDestination | kSetReceivePsn;
  constexpr u32 kAnswers = kSetReadsAsResponder | kSetRnrTimer;
  constexpr u32 kRts = kSetState | kSetTimeout | kSetSendPsn;
  constexpr u32 kAsks = kSetRetries | kSetRnrRetries | kSetReadsAsRequester;
  const auto may = [](Half half, State from, State to, u32 bits) {
    return may_change(Service::xrc, half, from, to, bits);
  };
  EXPECT_TRUE(may(Half::requester, State::init, State::rtr, kPeer));
  EXPECT_FALSE(may(Half::requester, State::init, State::rtr, kPeer | kAnswers));
  EXPECT_TRUE(may(Half::responder, State::init, State::rtr, kPeer | kAnswers));
  EXPECT_FALSE(may(Half::responder, State::init, State::rtr, kPeer));
  EXPECT_TRUE(may(Half::requester, State::rtr, State::rts, kRts | kAsks));
  EXPECT_FALSE(may(Half::requester, State::rtr, State::rts, kRts));
  EXPECT_TRUE(may(Half::responder, State::rtr, State::rts, kRts | kSetRnrTimer));
  EXPECT_FALSE(may(Half::responder, State::rtr, State::rts, kRts | kAsks));
}

TEST(RoceXrc, ManyReceiveQueuesComeAndGo) {
  Xrc pair;
  std::vector<std::unique_ptr<SharedReceiveQueue>> queues;
  for (u32 i = 0; i < 200; ++i) queues.push_back(pair.b.make_receives(Pair::kXrcDomain));
  for (u32 i = 0; i < 200; i += 2) queues[i].reset();
  for (u32 i = 0; i < 200; i += 2) queues[i] = pair.b.make_receives(Pair::kXrcDomain);
  std::vector<u32> numbers;
  for (const auto& queue : queues) numbers.push_back(queue->number());
  std::ranges::sort(numbers);
  EXPECT_TRUE(std::ranges::adjacent_find(numbers) == numbers.end());
  for (u32 i = 0; i < 200; ++i) {
    ASSERT_EQ(queues[i]->post(i, std::vector{pair.b.sge(i * 16, 16)}), 0);
    ASSERT_EQ(pair.send(queues[i]->number(), 9), 0);
    ASSERT_EQ(pair.next(pair.b).id, i);
    ASSERT_EQ(pair.next(pair.a).status, Status::success);
  }
}

}  // namespace
}  // namespace doorbell::roce::test
