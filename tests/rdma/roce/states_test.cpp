// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A queue pair's states: which changes are allowed, and what each does to requests and completions.
#include <gtest/gtest.h>

#include <cerrno>

#include "rdma/roce/fake_wire.hpp"
#include "rdma/roce/states.hpp"

namespace doorbell::roce::test {
namespace {

constexpr u32 kToInit = kSetState | kSetPartition | kSetPort | kSetAccess;
constexpr u32 kToRtr =
    kSetState | kSetPeer | kSetMtu | kSetDestination | kSetReceivePsn | kSetReadsAsResponder | kSetRnrTimer;
constexpr u32 kToRts =
    kSetState | kSetTimeout | kSetRetries | kSetRnrRetries | kSetSendPsn | kSetReadsAsRequester;

TEST(RoceStates, TheWholeTable) {
  // Pairs of states that some set of attributes allows, besides RESET and ERROR, which all reach.
  const auto possible = [](State from, State to) {
    using enum State;
    return (from == reset && to == init) || (from == init && (to == init || to == rtr)) ||
           (from == rtr && to == rts) || (from == rts && (to == rts || to == sqd)) ||
           (from == sqd && (to == rts || to == sqd)) || (from == sqe && to == rts);
  };
  for (const auto& [service, half] :
       {std::pair{Service::rc, Half::both}, std::pair{Service::uc, Half::both},
        std::pair{Service::ud, Half::both}, std::pair{Service::xrc, Half::requester},
        std::pair{Service::xrc, Half::responder}}) {
    for (u8 from = 0; from <= 6; ++from) {
      for (u8 to = 0; to <= 6; ++to) {
        bool any = false;
        for (u32 set = 0; set < 1 << 16; ++set) {
          // All attributes that the table names, in each combination.
          static constexpr u32 kBits[] = {kSetCurrent,    kSetAccess,     kSetPartition,
                                          kSetPort,       kSetQueueKey,   kSetPeer,
                                          kSetMtu,        kSetTimeout,    kSetRetries,
                                          kSetRnrRetries, kSetReceivePsn, kSetReadsAsRequester,
                                          kSetRnrTimer,   kSetSendPsn,    kSetReadsAsResponder,
                                          kSetDestination};
          u32 bits = kSetState;
          for (u32 i = 0; i < 16; ++i)
            if ((set >> i & 1) != 0) bits |= kBits[i];
          any = any || may_change(service, half, static_cast<State>(from), static_cast<State>(to), bits);
          if (any) break;
        }
        const bool always = to == 0 || to == 6;
        const bool expected = always || (possible(static_cast<State>(from), static_cast<State>(to)) &&
                                         !(from == 5 && reliable(service)));
        EXPECT_EQ(any, expected) << int{from} << " to " << int{to};
      }
    }
  }
}

TEST(RoceStates, EachAttributeIsNeededAndNoOtherAllowed) {
  EXPECT_TRUE(may_change(Service::rc, Half::both, State::reset, State::init, kToInit));
  EXPECT_TRUE(may_change(Service::rc, Half::both, State::init, State::rtr, kToRtr | kSetAccess));
  EXPECT_TRUE(may_change(Service::rc, Half::both, State::rtr, State::rts, kToRts | kSetRnrTimer));
  const auto each_needed = [](State from, State to, u32 needed) {
    for (u32 left = needed & ~u32{kSetState}; left != 0; left &= left - 1)
      EXPECT_FALSE(may_change(Service::rc, Half::both, from, to, needed & ~(left & (~left + 1)))) << left;
  };
  each_needed(State::reset, State::init, kToInit);
  each_needed(State::init, State::rtr, kToRtr);
  each_needed(State::rtr, State::rts, kToRts);
  EXPECT_FALSE(may_change(Service::rc, Half::both, State::reset, State::init, kToInit | kSetQueueKey));
  EXPECT_FALSE(may_change(Service::ud, Half::both, State::reset, State::init, kToInit));
  EXPECT_FALSE(may_change(Service::rc, Half::both, State::init, State::rtr, kToRtr | kSetTimeout));
  EXPECT_FALSE(may_change(Service::rc, Half::both, State::rts, State::reset, kSetState | kSetAccess));
}

TEST(RoceStates, ValuesOutOfRange) {
  const auto refused = [](u32 bits, const std::function<void(QueuePairAttributes&)>& change) {
    Pair pair;
    QueuePairAttributes a = connected_attributes(pair.b.at, 5);
    a.state = State::reset;
    EXPECT_EQ(pair.a_pair->modify(a, kSetState), 0);
    a.state = State::init;
    EXPECT_EQ(pair.a_pair->modify(a, kToInit), 0);
    const bool rtr = (kToRtr & bits) != 0;
    a.state = State::rtr;
    if (!rtr) {
      EXPECT_EQ(pair.a_pair->modify(a, kToRtr), 0);
      a.state = State::rts;
    }
    change(a);
    const QueuePairAttributes before = pair.a_pair->attributes();
    EXPECT_EQ(pair.a_pair->modify(a, rtr ? kToRtr : kToRts), EINVAL);
    EXPECT_EQ(pair.a_pair->state(), before.state);
    EXPECT_EQ(pair.a_pair->attributes().mtu, before.mtu);
  };
  refused(kSetMtu, [](QueuePairAttributes& a) { a.mtu = 8192; });
  refused(kSetMtu, [](QueuePairAttributes& a) { a.mtu = 128; });
  refused(kSetMtu, [](QueuePairAttributes& a) { a.mtu = 1000; });
  refused(kSetMtu, [](QueuePairAttributes& a) { a.mtu = 0; });
  refused(kSetDestination, [](QueuePairAttributes& a) { a.destination = 1 << 24; });
  refused(kSetReadsAsResponder, [](QueuePairAttributes& a) { a.reads_as_responder = 17; });
  refused(kSetRnrTimer, [](QueuePairAttributes& a) { a.rnr_timer = 32; });
  refused(kSetTimeout, [](QueuePairAttributes& a) { a.timeout = 32; });
  refused(kSetRetries, [](QueuePairAttributes& a) { a.retries = 8; });
  refused(kSetRnrRetries, [](QueuePairAttributes& a) { a.rnr_retries = 8; });
  refused(kSetReadsAsRequester, [](QueuePairAttributes& a) { a.reads_as_requester = 17; });
}

TEST(RoceStates, PostingByState) {
  Pair pair;
  QueuePairOptions options;
  const auto fresh = pair.a.make(options);
  QueuePairAttributes a = connected_attributes(pair.b.at, 5);
  const std::vector sge{pair.a.sge(0, 8)};
  EXPECT_EQ(fresh->post({}, sge), EINVAL);
  EXPECT_EQ(fresh->post_receive(1, sge), EINVAL);
  a.state = State::init;
  ASSERT_EQ(fresh->modify(a, kToInit), 0);
  EXPECT_EQ(fresh->post({}, sge), EINVAL);
  EXPECT_EQ(fresh->post_receive(1, sge), 0);
  EXPECT_EQ(fresh->post_receive(2, sge), ENOMEM);
  a.state = State::rtr;
  ASSERT_EQ(fresh->modify(a, kToRtr), 0);
  EXPECT_EQ(fresh->post({}, sge), EINVAL);
  a.state = State::rts;
  ASSERT_EQ(fresh->modify(a, kToRts), 0);
  EXPECT_EQ(fresh->post({}, sge), 0);
  EXPECT_EQ(fresh->post({}, sge), ENOMEM);
}

TEST(RoceStates, ErrorFlushesInOrderAndWhatComesLater) {
  Pair pair;
  pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
  for (u64 id = 1; id <= 3; ++id) {
    SendRequest request;  // not signaled, too
    request.id = id;
    ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, 8)}), 0);
    ASSERT_EQ(pair.a_pair->post_receive(10 + id, std::vector{pair.a.sge(0, 8)}), 0);
  }
  pair.run_for(1'000'000);
  QueuePairAttributes a;
  a.state = State::error;
  ASSERT_EQ(pair.a_pair->modify(a, kSetState), 0);
  SendRequest late;
  late.id = 4;
  ASSERT_EQ(pair.a_pair->post(late, std::vector{pair.a.sge(0, 8)}), 0);
  ASSERT_EQ(pair.a_pair->post_receive(14, std::vector{pair.a.sge(0, 8)}), 0);
  pair.run_for(1'000'000);
  const auto all = pair.a.poll();
  ASSERT_EQ(all.size(), 8U);
  const u64 expected[] = {1, 2, 3, 11, 12, 13, 4, 14};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].id, expected[i]);
    EXPECT_EQ(all[i].status, Status::flushed);
    EXPECT_EQ(all[i].opcode, expected[i] > 10 ? WcOpcode::receive : WcOpcode::send);
  }
}

TEST(RoceStates, AHalfReceivedMessageIsFlushed) {
  Pair pair;
  u32 sent = 0;
  pair.wire.fate = [&](Endpoint, std::span<const u8>) { return sent++ >= 2 ? Fate::drop : Fate::pass; };
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 2000)}), 0);
  ASSERT_EQ(pair.b_pair->post_receive(6, std::vector{pair.b.sge(0, 2000)}), 0);
  ASSERT_EQ(pair.a_pair->post({}, std::vector{pair.a.sge(0, 2000)}), 0);
  pair.run_for(1'000'000);
  QueuePairAttributes a;
  a.state = State::error;
  ASSERT_EQ(pair.b_pair->modify(a, kSetState), 0);
  const auto all = pair.b.poll();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].id, 5U);
  EXPECT_EQ(all[1].id, 6U);
}

TEST(RoceStates, ResetForgetsAllAndConnectsAnew) {
  Pair pair;
  for (u32 turn = 0; turn < 3; ++turn) {
    ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 64)}), 0);
    SendRequest add;
    add.id = 2;
    add.opcode = WrOpcode::fetch_add;
    add.flags = kSignaled;
    add.remote_address = pair.b.address(512);
    add.remote_key = pair.b.keys.remote_key;
    add.compare_or_add = 1;
    ASSERT_EQ(pair.a_pair->post({.id = 1, .flags = kSignaled}, std::vector{pair.a.sge(0, 64)}), 0);
    ASSERT_EQ(pair.a_pair->post(add, std::vector{pair.a.sge(128, 8)}), 0);
    pair.run_for(5'000'000);
    u64 value = 0;
    std::memcpy(&value, &pair.b.memory[512], 8);
    EXPECT_EQ(value, turn + 1);
    EXPECT_EQ(pair.b.poll().size(), 1U);
    // Completions in the queue, receives and requests that wait are of the time before.
    pair.wire.fate = [](Endpoint, std::span<const u8>) { return Fate::drop; };
    ASSERT_EQ(pair.a_pair->post({.id = 3, .flags = kSignaled}, std::vector{pair.a.sge(0, 64)}), 0);
    ASSERT_EQ(pair.a_pair->post_receive(4, std::vector{pair.a.sge(0, 64)}), 0);
    pair.run_for(1'000'000);
    pair.wire.fate = nullptr;
    auto to_b = connected_attributes(pair.b.at, pair.b_pair->number());
    auto to_a = connected_attributes(pair.a.at, pair.a_pair->number());
    QueuePairAttributes reset;
    ASSERT_EQ(pair.a_pair->modify(reset, kSetState), 0);
    ASSERT_EQ(pair.b_pair->modify(reset, kSetState), 0);
    EXPECT_TRUE(pair.a.poll().empty());
    EXPECT_EQ(pair.a_pair->post({}, std::vector{pair.a.sge(0, 64)}), EINVAL);
    ASSERT_EQ(bring_up(*pair.a_pair, Service::rc, to_b), 0);
    ASSERT_EQ(bring_up(*pair.b_pair, Service::rc, to_a), 0);
  }
}

TEST(RoceStates, DrainingFinishesWhatHasBegunAndHoldsTheRest) {
  Pair pair;
  constexpr u32 kNotify = 1 << 2;
  SendRequest write;
  write.opcode = WrOpcode::write;
  write.flags = kSignaled;
  write.remote_address = pair.b.address(0);
  write.remote_key = pair.b.keys.remote_key;
  write.id = 1;
  ASSERT_EQ(pair.a_pair->post(write, std::vector{pair.a.sge(0, 3000)}), 0);
  pair.a.nic->round_at(pair.now);
  QueuePairAttributes a;
  a.state = State::sqd;
  ASSERT_EQ(pair.a_pair->modify(a, kSetState | kNotify), 0);
  EXPECT_FALSE(pair.a.was_told(Event::send_queue_drained));
  write.id = 2;
  ASSERT_EQ(pair.a_pair->post(write, std::vector{pair.a.sge(0, 8)}), 0);
  pair.run_for(5'000'000);
  EXPECT_TRUE(pair.a.was_told(Event::send_queue_drained));
  EXPECT_EQ(pair.a.told.size(), 1U);
  const auto done = pair.a.poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].id, 1U);
  a.timeout = 15;
  a.state = State::sqd;
  EXPECT_EQ(pair.a_pair->modify(a, kSetState | kSetTimeout), 0);
  a.state = State::rts;
  ASSERT_EQ(pair.a_pair->modify(a, kSetState), 0);
  EXPECT_EQ(pair.next(pair.a).id, 2U);
  EXPECT_EQ(pair.a_pair->attributes().timeout, 15);
}

TEST(RoceStates, ABadDatagramStopsTheSendQueueOnly) {
  Pair pair(Service::ud);
  ASSERT_EQ(pair.error, 0);
  Sge wrong = pair.a.sge(0, 8);
  wrong.key = 0;
  SendRequest request;
  request.id = 1;
  request.to = pair.b.at;
  request.to_queue_pair = pair.b_pair->number();
  request.queue_key = 0x1111;
  request.flags = kSignaled;
  ASSERT_EQ(pair.a_pair->post(request, std::vector{wrong}), 0);
  request.id = 2;
  ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, 8)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::local_protection);
  EXPECT_EQ(pair.next(pair.a).status, Status::flushed);
  EXPECT_EQ(pair.a_pair->state(), State::sqe);
  ASSERT_EQ(pair.a_pair->post_receive(7, std::vector{pair.a.sge(0, 100)}), 0);
  QueuePairAttributes a;
  a.state = State::rts;
  a.current = State::sqe;
  ASSERT_EQ(pair.a_pair->modify(a, kSetState | kSetCurrent), 0);
  request.id = 3;
  ASSERT_EQ(pair.a_pair->post(request, std::vector{pair.a.sge(0, 8)}), 0);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
}

TEST(RoceStates, ADestroyedQueuePairTakesItsCompletionsAlong) {
  Pair pair;
  ASSERT_EQ(pair.b_pair->post_receive(5, std::vector{pair.b.sge(0, 64)}), 0);
  ASSERT_EQ(pair.a_pair->post({.id = 1, .flags = kSignaled}, std::vector{pair.a.sge(0, 64)}), 0);
  pair.run_for(2'000'000);
  pair.a_pair.reset();
  EXPECT_TRUE(pair.a.poll().empty());
  EXPECT_EQ(pair.b.poll().size(), 1U);
}

TEST(RoceStates, FailIsARequestThatMeansNothing) {
  Pair pair;
  SendRequest write;
  write.id = 1;
  write.opcode = WrOpcode::write;
  write.flags = kSignaled;
  write.remote_address = pair.b.address(0);
  write.remote_key = pair.b.keys.remote_key;
  ASSERT_EQ(pair.a_pair->post(write, std::vector{pair.a.sge(0, 900)}), 0);
  pair.a_pair->fail(2, Status::local_operation);
  EXPECT_EQ(pair.next(pair.a).status, Status::success);
  const Completion failed = pair.next(pair.a);
  EXPECT_EQ(failed.id, 2U);
  EXPECT_EQ(failed.status, Status::local_operation);
  EXPECT_EQ(pair.a_pair->state(), State::error);
}

}  // namespace
}  // namespace doorbell::roce::test
