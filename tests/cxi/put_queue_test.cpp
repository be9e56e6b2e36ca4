// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A PutQueue with a counter that the test writes: wraps, counts that are too large, failures and the end.

#include <doorbell/cxi/put_queue.hpp>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

namespace doorbell::cxi {
namespace {

constexpr OneLane kOneLane;
constexpr u32 kSlots = 64, kRequests = 8, kEventBytes = 4096;

class PutQueueTest : public testing::Test {
 protected:
  PutQueueTest() {
    CommandQueueStatus status;
    status.rd_ptr = kStatusSlots;
    status.return_code = ReturnCode::ok;
    store64_release(reinterpret_cast<u64*>(ring_.data()), pack(status).w[0]);
    state_.commands.memory.ring = ring_.data();
    state_.commands.memory.launch = reinterpret_cast<u8*>(launch_.data());
    state_.commands.memory.slots = kSlots;
    state_.events.memory = {reinterpret_cast<u8*>(events_.data()), &csr_, kEventBytes, 3};
    state_.counter = {nullptr, &counts_, 5};
    state_.requests = kRequests;
    answer(0);
  }
  using Queue = PutQueue<OneLane>;
  /// The counts that the device has written back.
  void answer(u64 success, u32 failure = 0) {
    CounterCounts c;
    c.success = success;
    c.failure = failure;
    c.valid = true;
    store64_release(&counts_, pack(c).w[0]);
  }
  template <class E>
  void write_event(const E& event) {
    const auto words = encode_event(event);
    for (u32 k = 0; k < E::kWords; ++k) events_[event_at_++] = words.w[k];
  }
  void write_event(EventType type, ReturnCode code) {
    InitiatorEvent e;
    e.type = type;
    e.return_code = code;
    write_event(e);
  }
  static void post(Queue& q, u32 n) {
    q.post(kOneLane, n, [](u32) {
      rma::WorkRequest r;
      r.bytes = 64;
      return r;
    });
    (void)q.ring(kOneLane);
  }
  /// The next completion among the looks that it may take.
  static Queue::Polled wait(Queue& q) {
    Queue::Polled p;
    for (int i = 0; i < 200 && p.count == 0; ++i) p = q.poll(kOneLane);
    return p;
  }

  std::vector<Word16> ring_ = std::vector<Word16>(u64{kSlots} * kSlotParts);
  std::array<u64, kLaunchBytes / 8> launch_{};
  std::array<u64, kEventBytes / 8> events_{};
  u32 event_at_ = kEventQueueHead / 8;
  u64 csr_ = 0;
  u64 counts_ = 0;
  PutQueueState state_;
};

/// Of a device that writes successes back when it is asked.
class AskingPutQueueTest : public PutQueueTest {
 protected:
  AskingPutQueueTest() {
    counts_ = 0;
    state_.asks.memory = {.ring = asks_.data(),
                          .launch = reinterpret_cast<u8*>(asks_launch_.data()),
                          .slots = kSlots,
                          .index = 9,
                          .triggered = true};
    show_read(kStatusSlots);
  }
  void show_read(u64 slot) {
    CommandQueueStatus status;
    status.rd_ptr = static_cast<u32>(slot);
    status.return_code = ReturnCode::ok;
    store64_release(reinterpret_cast<u64*>(asks_.data()), pack(status).w[0]);
  }
  /// The device reads what was rung: how many requests for the counts of counter 5.
  u32 take_requests() {
    const u64 until = asks_launch_[0];
    u32 n = 0;
    for (; until != 0 && read_ != until; read_ = read_ + 1 == kSlots ? kStatusSlots : read_ + 1) {
      CounterCommand c;
      EXPECT_TRUE(decode(reinterpret_cast<const u64*>(asks_.data() + read_ * kSlotParts), c));
      EXPECT_EQ(c.opcode, CounterOpcode::get);
      EXPECT_EQ(c.ct, 5u);
      ++n;
    }
    show_read(read_);
    return n;
  }

  std::vector<Word16> asks_ = std::vector<Word16>(u64{kSlots} * kSlotParts);
  std::array<u64, kLaunchBytes / 8> asks_launch_{};
  u64 read_ = kStatusSlots;
};

TEST_F(PutQueueTest, TheCounterWrapsAt48Bits) {
  state_.success = kMaxSuccess - 1;
  answer(kMaxSuccess - 1);
  Queue q(state_);
  post(q, 6);
  EXPECT_EQ(q.poll(kOneLane).count, 0u);
  answer(kMaxSuccess);
  EXPECT_EQ(q.poll(kOneLane).serial, 1u);
  EXPECT_EQ(q.room(), kRequests - 5);
  answer(2);
  const auto p = q.poll(kOneLane);
  EXPECT_EQ(p.count, 1u);
  EXPECT_EQ(p.serial, 4u);
  EXPECT_EQ(p.mine.status, rma::Status::ok);
  EXPECT_EQ(q.poll(kOneLane).count, 0u);
  answer(4);
  EXPECT_EQ(q.poll(kOneLane).serial, 6u);
  EXPECT_EQ(q.state().success, 4u);
  EXPECT_EQ(q.duplicated() + q.protocol(), 0u);
}

TEST_F(PutQueueTest, UnexpectedAcknowledgementsAreCounted) {
  Queue q(state_);
  post(q, 2);
  answer(5);
  EXPECT_EQ(q.poll(kOneLane).serial, 2u);
  EXPECT_EQ(q.duplicated(), 3u);
  answer(6);
  EXPECT_EQ(q.poll(kOneLane).count, 0u);
  EXPECT_EQ(q.duplicated(), 4u);
  post(q, 1);
  EXPECT_EQ(wait(q).count, 0u) << "those that came too early answer nothing later";
  answer(7);
  EXPECT_EQ(q.poll(kOneLane).serial, 3u);
  EXPECT_EQ(q.protocol(), 0u);
}

/// The device counts an acknowledgement and then writes the event of the failure behind it, between this
/// side's looks at the one and the other.
struct BetweenLooks : OneLane {
  std::function<void()>* then;
  void sync() const {
    if (*then) std::exchange(*then, nullptr)();
  }
};

TEST_F(PutQueueTest, WhatWasCountedBeforeAFailureEndedBeforeIt) {
  std::function<void()> then;
  BetweenLooks warp;
  warp.then = &then;
  PutQueue<BetweenLooks> q(state_);
  q.post(warp, 2, [](u32) { return rma::WorkRequest{.bytes = 64}; });
  (void)q.ring(warp);
  auto p = q.poll(warp);
  for (u32 look = 0; look < 200 && p.count == 0; ++look) {
    // Behind the load of the counter, in the poll that looks for an event although no failure is counted.
    if (q.state().idle == 63)
      then = [&] {
        answer(1, 1);
        write_event(EventType::ack, ReturnCode::pt_disabled);
      };
    p = q.poll(warp);
  }
  EXPECT_EQ(p.serial, 1u);
  EXPECT_EQ(p.mine.status, rma::Status::ok);
  for (u32 look = 0; look < 200 && (look == 0 || p.count == 0); ++look) p = q.poll(warp);
  EXPECT_EQ(p.serial, 2u);
  EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::pt_disabled)));
}

TEST_F(PutQueueTest, WhatAStoppedQueueGaveUpMayStillBeAcknowledged) {
  Queue q(state_);
  post(q, 3);
  write_event(EventType::command_failure, ReturnCode::no_space);
  EXPECT_EQ(wait(q).serial, 3u);
  answer(2);
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(q.duplicated(), 0u);
}

TEST_F(PutQueueTest, EachFailureIsReportedAlsoWhereTheirCountWraps) {
  state_.failures = kMaxFailure - 1;
  answer(0, kMaxFailure - 1);
  Queue q(state_);
  post(q, 4);
  for (u32 n = 1; n <= 3; ++n) {
    write_event(n == 2 ? EventType::reply : EventType::ack, ReturnCode::pt_disabled);
    answer(0, (kMaxFailure - 1 + n) & kMaxFailure);
    const auto p = q.poll(kOneLane);
    ASSERT_EQ(p.count, 1u) << "the count alone says that there is an event";
    EXPECT_EQ(p.serial, n);
    EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::pt_disabled)));
    EXPECT_FALSE(p.mine.flush_all);
  }
  // Where all of the events have been read, nothing more is looked for.
  answer(1, (kMaxFailure + 2) & kMaxFailure);
  EXPECT_EQ(q.poll(kOneLane).serial, 4u);
  EXPECT_EQ(q.state().failures, kMaxFailure + 2);
  write_event(EventType::link, ReturnCode::ok);
  (void)q.poll(kOneLane);
  EXPECT_EQ(q.protocol() + q.duplicated(), 0u) << "events were looked for at every poll";
}

TEST_F(PutQueueTest, SuccessesBeforeFailuresThatCameWithThem) {
  Queue q(state_);
  post(q, 5);
  write_event(EventType::ack, ReturnCode::dropped);
  write_event(EventType::ack, ReturnCode::dropped);
  answer(3, 2);
  auto p = wait(q);
  EXPECT_EQ(p.serial, 3u);
  EXPECT_EQ(p.mine.status, rma::Status::ok);
  for (u32 n = 4; n <= 5; ++n) {
    p = wait(q);
    EXPECT_EQ(p.serial, n);
    EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::dropped)));
  }
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(q.completed(), 5u);
}

TEST_F(PutQueueTest, AFailureIsReportedWhenItIsCounted) {
  Queue q(state_);
  post(q, 3);
  write_event(EventType::ack, ReturnCode::pt_disabled);
  EXPECT_EQ(wait(q).count, 0u) << "the two that ended before it have not been counted yet";
  answer(2, 1);
  auto p = wait(q);
  EXPECT_EQ(p.serial, 2u);
  EXPECT_EQ(p.mine.status, rma::Status::ok);
  p = wait(q);
  EXPECT_EQ(p.serial, 3u);
  EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::pt_disabled)));
}

TEST_F(PutQueueTest, EventsThatNothingExplainsAreCounted) {
  Queue q(state_);
  write_event(EventType::ack, ReturnCode::dropped);
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(q.protocol(), 1u) << "a failure, and nothing in flight";
  post(q, 1);
  write_event(EventType::ack, ReturnCode::ok);
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(q.protocol(), 2u) << "events of successes were not asked for";
  write_event(EventType::link, ReturnCode::ok);
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(q.protocol(), 3u);
  EXPECT_NE(csr_, 0u) << "their room is given back";
}

TEST_F(PutQueueTest, MoreFailuresThanOperationsAreCounted) {
  Queue q(state_);
  post(q, 1);
  write_event(EventType::ack, ReturnCode::dropped);
  write_event(EventType::ack, ReturnCode::dropped);
  answer(0, 2);
  EXPECT_EQ(wait(q).serial, 1u);
  EXPECT_EQ(q.protocol(), 1u);
  post(q, 1);
  EXPECT_EQ(wait(q).count, 0u) << "it is not the later one's";
  answer(1, 2);
  EXPECT_EQ(wait(q).serial, 2u);
}

TEST_F(AskingPutQueueTest, APollThatFindsNothingAsksOnce) {
  Queue q(state_);
  post(q, 3);
  EXPECT_EQ(take_requests(), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(q.poll(kOneLane).count, 0u);
  EXPECT_EQ(take_requests(), 1u) << "the next when it is answered";
  EXPECT_FALSE(q.settled());
  answer(0);
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_TRUE(q.settled()) << "the device says that there is nothing";
  EXPECT_EQ(take_requests(), 1u);
  answer(2);
  auto p = q.poll(kOneLane);
  EXPECT_EQ(p.serial, 2u);
  EXPECT_EQ(p.mine.status, rma::Status::ok);
  EXPECT_FALSE(q.settled());
  EXPECT_EQ(take_requests(), 0u) << "not before a poll finds nothing";
  EXPECT_EQ(q.poll(kOneLane).count, 0u) << "an answer counts once";
  EXPECT_EQ(take_requests(), 1u);
  EXPECT_EQ(counts_, 0u) << "cleared, to see the next answer";
  Queue later(q.state());
  answer(3);
  EXPECT_EQ(later.poll(kOneLane).serial, 3u);
  EXPECT_EQ(later.duplicated() + later.protocol(), 0u);
}

TEST_F(AskingPutQueueTest, AFailureIsWrittenBackUnasked) {
  Queue q(state_);
  post(q, 4);
  EXPECT_EQ(q.poll(kOneLane).count, 0u);
  EXPECT_EQ(take_requests(), 1u);
  write_event(EventType::ack, ReturnCode::pt_disabled);
  answer(1, 1);  // before the answer
  EXPECT_EQ(q.poll(kOneLane).serial, 1u);
  const auto p = q.poll(kOneLane);
  EXPECT_EQ(p.serial, 2u);
  EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::pt_disabled)));
  EXPECT_EQ(wait(q).count, 0u);
  answer(1, 1);  // it comes now
  EXPECT_EQ(wait(q).count, 0u);
  EXPECT_EQ(take_requests(), 2u);
  answer(3, 1);
  EXPECT_EQ(wait(q).serial, 4u);
  EXPECT_EQ(q.duplicated() + q.protocol(), 0u);
}

TEST_F(AskingPutQueueTest, TheLongerTheWaitTheFewerTheRequests) {
  Queue q(state_);
  post(q, 1);
  u32 asked = 0, early = 0;
  for (u32 n = 1; n <= 10'000; ++n) {
    EXPECT_EQ(q.poll(kOneLane).count, 0u);
    if (take_requests() == 0) continue;
    ++asked;
    answer(0);
    if (n == 7) early = asked;
  }
  EXPECT_EQ(early, 7u) << "at first at each poll";
  EXPECT_LT(asked, 150u);
  EXPECT_GT(asked, 50u);
  answer(1);
  EXPECT_EQ(q.poll(kOneLane).serial, 1u) << "what is there is not waited for";
}

TEST_F(AskingPutQueueTest, RequestsThatTheDeviceDoesNotReadFillTheirQueue) {
  Queue q(state_);
  post(q, 1);
  for (u32 n = 0; n < 100'000; ++n) {
    EXPECT_EQ(q.poll(kOneLane).count, 0u);
    answer(0);
  }
  EXPECT_EQ(take_requests(), kSlots - kStatusSlots - 1);
  EXPECT_FALSE(Queue(q.state()).settled());
  for (u32 n = 0; n < 5000; ++n) (void)q.poll(kOneLane);
  EXPECT_EQ(take_requests(), 1u);
  answer(1);
  EXPECT_EQ(q.poll(kOneLane).serial, 1u);
}

TEST_F(PutQueueTest, ACommandThatFailsEndsEverything) {
  Queue q(state_);
  post(q, 3);
  answer(1);
  EXPECT_EQ(q.poll(kOneLane).serial, 1u);
  CommandFailureEvent e;
  e.type = EventType::command_failure;
  e.return_code = ReturnCode::illegal_op;
  write_event(e);
  auto p = wait(q);
  ASSERT_EQ(p.count, 1u);
  EXPECT_EQ(p.serial, 3u);
  EXPECT_TRUE(p.mine.flush_all);
  EXPECT_EQ(p.mine.status, status_of(static_cast<u32>(ReturnCode::illegal_op)));
  EXPECT_EQ(wait(q).count, 0u) << "told once";
  post(q, 2);
  p = wait(q);
  EXPECT_EQ(p.serial, 5u) << "what is posted later has no better fate";
  EXPECT_TRUE(p.mine.flush_all);
}

}  // namespace
}  // namespace doorbell::cxi
