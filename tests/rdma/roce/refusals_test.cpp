// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests that are refused, now or for good: what each side is told, and that memory stays as it was.
#include <gtest/gtest.h>

#include "rdma/roce/fake_wire.hpp"
#include "rdma/roce/requester.hpp"

namespace doorbell::roce::test {
namespace {

/// Posts, and expects an error at both ends, with nothing changed at the responder.
struct Refusal {
  std::string name;
  std::function<void(Pair&, SendRequest&, Sge&)> change;
  WrOpcode opcode = WrOpcode::write;
  Status status = Status::remote_access;
  NakCode nak = NakCode::remote_access;
  Event event = Event::qp_access_error;
};

class RoceRefusals : public testing::TestWithParam<Refusal> {};

TEST_P(RoceRefusals, EndsBothSidesAndChangesNothing) {
  const Refusal& refusal = GetParam();
  Pair pair;
  ASSERT_EQ(pair.error, 0);
  std::fill(pair.a.memory.begin(), pair.a.memory.end(), u8{0xAA});
  SendRequest request = request_of(pair, refusal.opcode);
  Sge sge = pair.a.sge(0, refusal.opcode >= WrOpcode::compare_swap ? 8 : 1000);
  refusal.change(pair, request, sge);
  const Bytes before = pair.b.memory;
  ASSERT_EQ(pair.a_pair->post(request, std::vector{sge}), 0);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, 2), std::vector{pair.a.sge(0, 8)}), 0);
  const Completion completion = pair.next(pair.a);
  EXPECT_EQ(completion.id, 1U);
  EXPECT_EQ(completion.status, refusal.status);
  const Completion flushed = pair.next(pair.a);
  EXPECT_EQ(flushed.id, 2U);
  EXPECT_EQ(flushed.status, Status::flushed);
  EXPECT_EQ(pair.a_pair->state(), State::error);
  EXPECT_EQ(pair.b_pair->state(), State::error);
  EXPECT_TRUE(pair.b.was_told(refusal.event));
  EXPECT_EQ(pair.b.nic->counters().naks_sent[static_cast<std::size_t>(refusal.nak)], 1U);
  EXPECT_EQ(pair.a.nic->counters().naks_received[static_cast<std::size_t>(refusal.nak)], 1U);
  EXPECT_TRUE(before == pair.b.memory);
}

const std::vector<Refusal> kRefusals = {
    {.name = "key_of_nobody", .change = [](Pair&, SendRequest& r, Sge&) { r.remote_key ^= 0xFF00; }},
    {.name = "key_of_another_generation", .change = [](Pair&, SendRequest& r, Sge&) { ++r.remote_key; }},
    {.name = "key_0", .change = [](Pair&, SendRequest& r, Sge&) { r.remote_key = 0; }},
    {.name = "before_the_region",
     .change = [](Pair& p, SendRequest& r, Sge&) { r.remote_address = p.b.address(0) - 1; }},
    {.name = "past_the_region",
     .change = [](Pair& p, SendRequest& r,
                  Sge&) { r.remote_address = p.b.address(p.b.memory.size() - 999); }},
    {.name = "wraps_to_0", .change = [](Pair&, SendRequest& r, Sge&) { r.remote_address = ~u64{0} - 10; }},
    {.name = "key_given_back",
     .change =
         [](Pair& p, SendRequest& r, Sge&) {
           RegisteredMemory keys;
           ASSERT_EQ(p.b.nic->register_memory(Host::kDomain, p.b.memory.data(), 4096, p.b.address(0),
                                              Host::kEveryRight, keys),
                     0);
           ASSERT_EQ(p.b.nic->deregister_memory(keys.local_key), 0);
           r.remote_key = keys.remote_key;
         }},
    {.name = "another_domain",
     .change =
         [](Pair& p, SendRequest& r, Sge&) {
           RegisteredMemory keys;
           ASSERT_EQ(p.b.nic->register_memory(Host::kDomain + 1, p.b.memory.data(), 4096, p.b.address(0),
                                              Host::kEveryRight, keys),
                     0);
           r.remote_key = keys.remote_key;
         }},
    {.name = "region_without_the_right",
     .change =
         [](Pair& p, SendRequest& r, Sge&) {
           RegisteredMemory keys;
           ASSERT_EQ(p.b.nic->register_memory(Host::kDomain, p.b.memory.data(), 4096, p.b.address(0),
                                              kLocalWrite | kRemoteRead | kRemoteAtomic, keys),
                     0);
           r.remote_key = keys.remote_key;
         }},
    {.name = "read_without_the_right",
     .change =
         [](Pair& p, SendRequest& r, Sge&) {
           RegisteredMemory keys;
           ASSERT_EQ(p.b.nic->register_memory(Host::kDomain, p.b.memory.data(), 4096, p.b.address(0),
                                              kLocalWrite | kRemoteWrite | kRemoteAtomic, keys),
                     0);
           r.remote_key = keys.remote_key;
         },
     .opcode = WrOpcode::read},
    {.name = "atomic_without_the_right",
     .change =
         [](Pair& p, SendRequest& r, Sge&) {
           RegisteredMemory keys;
           ASSERT_EQ(p.b.nic->register_memory(Host::kDomain, p.b.memory.data(), 4096, p.b.address(0),
                                              kLocalWrite | kRemoteWrite | kRemoteRead, keys),
                     0);
           r.remote_key = keys.remote_key;
         },
     .opcode = WrOpcode::fetch_add},
    {.name = "read_past_the_region",
     .change = [](Pair& p, SendRequest& r, Sge&) { r.remote_address = p.b.address(p.b.memory.size() - 999); },
     .opcode = WrOpcode::read},
    {.name = "atomic_past_the_region",
     .change = [](Pair& p, SendRequest& r,
                  Sge&) { r.remote_address = (p.b.address(p.b.memory.size()) + 7) & ~7ULL; },
     .opcode = WrOpcode::compare_swap},
    {.name = "write_that_the_queue_pair_forbids",
     .change =
         [](Pair& p, SendRequest&, Sge&) {
           QueuePairAttributes a;
           a.access = kRemoteRead;
           ASSERT_EQ(p.b_pair->modify(a, kSetAccess), 0);
         }},
    {.name = "read_that_the_queue_pair_forbids",
     .change =
         [](Pair& p, SendRequest&, Sge&) {
           QueuePairAttributes a;
           a.access = kRemoteWrite;
           ASSERT_EQ(p.b_pair->modify(a, kSetAccess), 0);
         },
     .opcode = WrOpcode::read},
    {.name = "invalidation_of_a_region",
     .change =
         [](Pair& p, SendRequest& r, Sge& sge) {
           sge.length = 0;
           r.immediate_or_key = p.b.keys.remote_key;
           ASSERT_EQ(p.b_pair->post_receive(9, std::vector{p.b.sge(0, 64)}), 0);
         },
     .opcode = WrOpcode::send_invalidate},
};

INSTANTIATE_TEST_SUITE_P(All, RoceRefusals, testing::ValuesIn(kRefusals),
                         [](const auto& one) { return one.param.name; });

TEST(RoceRefused, ALongerMessageThanTheReceive) {
  Pair pair;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 999)}), 0);
  ASSERT_EQ(pair.b_pair->post_receive(6, std::vector{pair.b.sge(0, 999)}), 0);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 1000)}), 0);
  const Completion received = pair.next(pair.b);
  EXPECT_EQ(received.id, 5U);
  EXPECT_EQ(received.status, Status::local_length);
  const Completion flushed = pair.next(pair.b);
  EXPECT_EQ(flushed.id, 6U);
  EXPECT_EQ(flushed.status, Status::flushed);
  EXPECT_EQ(flushed.opcode, WcOpcode::receive);
  EXPECT_EQ(pair.next(pair.a).status, Status::remote_invalid_request);
}

TEST(RoceRefused, AReceiveInMemoryThatIsNotTheQueuePairs) {
  Pair pair;
  Sge wrong = pair.b.sge(0, 64);
  wrong.key += 1 << 8;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{wrong}), 0);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 64)}), 0);
  EXPECT_EQ(pair.next(pair.b).status, Status::local_protection);
  EXPECT_EQ(pair.next(pair.a).status, Status::remote_operation);
  EXPECT_EQ(pair.b.memory[0], 0);
}

TEST(RoceRefused, ASendFromMemoryWithoutAKeyCompletesBehindThoseBefore) {
  Pair pair;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, 1), std::vector{pair.a.sge(0, 2000)}), 0);
  Sge wrong = pair.a.sge(0, 600);
  wrong.address = pair.a.address(pair.a.memory.size()) - 300;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, 2), std::vector{wrong}), 0);
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, 3), std::vector{pair.a.sge(0, 8)}), 0);
  const Completion first = pair.next(pair.a), second = pair.next(pair.a), third = pair.next(pair.a);
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.status, Status::success);
  EXPECT_EQ(second.id, 2U);
  EXPECT_EQ(second.status, Status::local_protection);
  EXPECT_EQ(third.id, 3U);
  EXPECT_EQ(third.status, Status::flushed);
}

TEST(RoceRefused, AReadIntoMemoryThatMayNotBeWritten) {
  Pair pair;
  RegisteredMemory keys;
  ASSERT_EQ(
      pair.a.nic->register_memory(Host::kDomain, pair.a.memory.data(), 4096, pair.a.address(0), 0, keys), 0);
  Sge sge = pair.a.sge(0, 64);
  sge.key = keys.local_key;
  pair.b.memory[1024] = 9;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::read), std::vector{sge}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::local_protection);
  EXPECT_EQ(pair.a.memory[0], 0);
}

TEST(RoceRefused, NoReceiveNowIsTriedAgainUntilThereIsOne) {
  for (const WrOpcode opcode : {WrOpcode::send, WrOpcode::write_immediate}) {
    Pair pair;
    pair.a.memory[5] = 77;
    ASSERT_EQ(pair.a_pair->post(request_of(pair, opcode), std::vector{pair.a.sge(0, 700)}), 0);
    // Three more behind it, which the responder leaves alone meanwhile.
    for (u64 id = 2; id <= 4; ++id)
      ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write, id), std::vector{pair.a.sge(0, 300)}), 0);
    pair.run_for(20'000'000);
    EXPECT_TRUE(pair.a.poll().empty());
    const Counters waiting = pair.b.nic->counters();
    // 0.64 ms each: 20 ms have about 31.
    EXPECT_GT(waiting.rnr_sent, 20U);
    EXPECT_LT(waiting.rnr_sent, 33U);
    EXPECT_EQ(waiting.naks_sent[0], 0U);
    EXPECT_EQ(pair.a.nic->counters().rnr_received, waiting.rnr_sent);
    ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 700)}), 0);
    EXPECT_EQ(pair.next(pair.b).status, Status::success);
    for (u64 id = 1; id <= 4; ++id) {
      const Completion sent = pair.next(pair.a);
      EXPECT_EQ(sent.id, id);
      EXPECT_EQ(sent.status, Status::success);
    }
    EXPECT_EQ(pair.b.memory[opcode == WrOpcode::send ? 5 : 1029], 77);
  }
}

// As Linux's soft-RoCE answers: each packet behind the one without a receive is out of sequence to it.
TEST(RoceRefused, PacketsBehindOneWithoutAReceiveUseUpNoRetries) {
  Pair pair;
  pair.wire.fate = [&](Endpoint from, std::span<const u8> packet) {
    Decoded answer;
    if (from != pair.b.at || decode(packet, answer)) return Fate::pass;
    if (answer.headers.operation != Operation::acknowledge ||
        answer.headers.ack.kind != Acknowledge::Kind::rnr)
      return Fate::pass;
    Headers late = answer.headers;
    late.ack = {.kind = Acknowledge::Kind::nak, .value = static_cast<u8>(NakCode::sequence)};
    Bytes refusal(kLongestHeaders);
    refusal.resize(encode(late, 0, refusal.data()));
    pair.a.carrier.inbox.emplace_back(pair.b.at, Bytes(packet.begin(), packet.end()));
    pair.a.carrier.inbox.emplace_back(pair.b.at, std::move(refusal));
    return Fate::drop;
  };
  pair.a.memory[5] = 77;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, kMtu + 1)}), 0);
  pair.run_for(20'000'000);
  EXPECT_TRUE(pair.a.poll().empty());
  // The wait of 0.64 ms is kept.
  EXPECT_LT(pair.b.nic->counters().rnr_sent, 33U);
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 700)}), 0);
  EXPECT_EQ(pair.next(pair.b).status, Status::success);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  EXPECT_EQ(pair.b.memory[5], 77);
}

TEST(RoceRefused, NoReceiveForTooLong) {
  Pair pair(Service::rc, [](QueuePairAttributes& a) { a.rnr_retries = 3; });
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::send), std::vector{pair.a.sge(0, 1)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::rnr_retry_exceeded);
  EXPECT_EQ(pair.b.nic->counters().rnr_sent, 4U);
  EXPECT_EQ(pair.a_pair->state(), State::error);
  EXPECT_EQ(pair.b_pair->state(), State::rts);
}

TEST(RoceRefused, ASilentPeerEndsInTime) {
  for (const u8 retries : {u8{0}, u8{1}, u8{7}}) {
    Pair pair(Service::rc, [&](QueuePairAttributes& a) { a.retries = retries; });
    pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
    const u64 before = pair.now;
    ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 5000)}), 0);
    EXPECT_EQ(pair.next(pair.a).status, Status::retry_exceeded);
    const u64 most = (retries + u64{1}) * timeout_ns(10);
    // A round is at most 1 ms late here.
    EXPECT_GE(pair.now - before, most);
    EXPECT_LE(pair.now - before, most + (retries + u64{1}) * 1'000'000);
    EXPECT_EQ(pair.a.nic->counters().timeouts, retries + 1U);
  }
}

/// A pair with retries for none, a time-out of 67 ms, and a round trip that has been measured.
Pair patient_pair() {
  return Pair(Service::rc, [](QueuePairAttributes& a) {
    a.timeout = 14;
    a.retries = 0;
  });
}

TEST(RoceProbes, ALostAnswerCostsNoTimeout) {
  for (const WrOpcode opcode : {WrOpcode::write, WrOpcode::read, WrOpcode::fetch_add}) {
    for (const bool request_is_lost : {false, true}) {
      SCOPED_TRACE(static_cast<int>(opcode) * 10 + (request_is_lost ? 1 : 0));
      Pair pair = patient_pair();
      const auto once = [&](u64 id) {
        return pair.a_pair->post(request_of(pair, opcode, id), std::vector{pair.a.sge(0, 8)});
      };
      ASSERT_EQ(once(1), 0);
      ASSERT_EQ(pair.next(pair.a).status, Status::success);
      int lost = 0;
      pair.wire.fate = [&](Endpoint from, std::span<const u8>) {
        return (from == pair.a.at) == request_is_lost && lost++ == 0 ? Fate::drop : Fate::pass;
      };
      const u64 before = pair.now;
      ASSERT_EQ(once(2), 0);
      EXPECT_EQ(pair.next(pair.a).status, Status::success);
      EXPECT_GE(pair.now - before, Requester::kLeastProbeNs);
      EXPECT_LT(pair.now - before, 2 * Requester::kLeastProbeNs);
      EXPECT_EQ(pair.a.nic->counters().probes, 1U);
      EXPECT_EQ(pair.a.nic->counters().timeouts, 0U);
    }
  }
}

TEST(RoceProbes, ASilentPeerIsAskedSeldomAndEndsInTime) {
  Pair pair = patient_pair();
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 8)}), 0);
  ASSERT_EQ(pair.next(pair.a).status, Status::success);
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  const u64 before = pair.now;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 8)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::retry_exceeded);
  EXPECT_GE(pair.now - before, timeout_ns(14));
  EXPECT_LE(pair.now - before, timeout_ns(14) + 1'000'000);
  // After 5, 15 and 35 ms.
  EXPECT_EQ(pair.a.nic->counters().probes, 3U);
}

TEST(RoceProbes, NoneWithoutATimer) {
  Pair pair(Service::rc, [](QueuePairAttributes& a) { a.timeout = 0; });
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 8)}), 0);
  ASSERT_EQ(pair.next(pair.a).status, Status::success);
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 8)}), 0);
  pair.run_for(1'000'000'000);
  EXPECT_EQ(pair.a.nic->counters().probes, 0U);
}

TEST(RoceRefused, NoTimerNoEnd) {
  Pair pair(Service::rc, [](QueuePairAttributes& a) { a.timeout = 0; });
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 1)}), 0);
  pair.run_for(3'000'000'000);
  EXPECT_TRUE(pair.a.poll().empty());
  EXPECT_EQ(pair.a.nic->next_due_ns(), ~u64{0});
}

TEST(RoceRefused, AStoppedProcessIsNoTimeout) {
  Pair pair(Service::rc, [](QueuePairAttributes& a) { a.retries = 1; });
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::write), std::vector{pair.a.sge(0, 1)}), 0);
  pair.a.nic->round_at(pair.now);
  // Nobody looked at the clock for an hour; of that, RunningTime counts 50 ms, and one timer has run out.
  pair.now += 3'600'000'000'000;
  pair.wire.fate = nullptr;
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  EXPECT_EQ(pair.a.nic->counters().timeouts, 1U);
}

TEST(RoceRefused, ABadLengthFromTheReadersPeer) {
  Pair pair;
  ASSERT_EQ(pair.a_pair->post(request_of(pair, WrOpcode::read), std::vector{pair.a.sge(0, 100)}), 0);
  pair.wire.fate = [&](Endpoint from, std::span<const u8>) {
    return from == pair.b.at ? Fate::drop : Fate::pass;
  };
  pair.a.nic->round_at(pair.now);
  Headers h;
  h.operation = Operation::read_response_only;
  h.queue_pair = pair.a_pair->number();
  h.psn = 0xFF'FFFC;
  Bytes packet(200);
  packet.resize(encode(h, 96, packet.data()) + 96);
  pair.a.carrier.inbox.emplace_back(pair.b.at, packet);
  EXPECT_EQ(pair.next(pair.a).status, Status::bad_response);
}

}  // namespace
}  // namespace doorbell::roce::test
