// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Connections of the drop-in librdmacm, both ends in one thread over a wire that loses, doubles and keeps
// back messages, with the test's own clock.
#include <gtest/gtest.h>

#include <cerrno>
#include <deque>
#include <functional>
#include <vector>

#include "rdma/dropin/cm/connection.hpp"

namespace doorbell::cm {
namespace {

using State = Connection::State;

struct Told {
  Happening what;
  int status;
  bool operator==(const Told&) const = default;
};

/// One end, and what its program does: the active one is ready as soon as REP has come, the passive one
/// accepts when REQ has come, unless a test wants otherwise.
class End final : public Surroundings {
 public:
  explicit End(u32 id) : connection(*this, id) {}
  void send(Connection&, const Message& message) override { sent.push_back(message); }
  void happened(Connection&, Happening what, int status, const Message* message) override {
    told.push_back({what, status});
    if (message != nullptr) last = *message;
    if (what == Happening::replied) {
      EXPECT_TRUE(connection.ready(now));
    }
  }
  [[nodiscard]] int times(Happening what) const {
    int count = 0;
    for (const Told& one : told) count += one.what == what ? 1 : 0;
    return count;
  }

  Connection connection;
  std::deque<Message> sent;
  std::vector<Told> told;
  Message last;
  u64 now = 1;
};

class Wire {
 public:
  End active{7}, passive{0x80000001};
  u64 now = 1;
  bool accepts = true, cut = false;
  /// The fate of the message of this number: 0 lost, 2 doubled.
  int odd = -1, copies = 1;
  int carried = 0;

  Message request() {
    Message message;
    message.kind = Kind::request;
    message.transaction = 99;
    message.queue_pair = 0x1234;
    return message;
  }

  /// Until nothing is on its way and no timer is due before `until`.
  void run(u64 until) {
    for (;;) {
      carry();
      u64 due = ~u64{0};
      for (End* end : {&active, &passive})
        if (end->connection.deadline() != 0) due = std::min(due, end->connection.deadline());
      if (due > until) break;
      now = due;
      for (End* end : {&active, &passive}) {
        end->now = now;
        end->connection.expire(now);
      }
    }
    now = until;
    active.now = passive.now = now;
  }

 private:
  void carry() {
    while (!active.sent.empty() || !passive.sent.empty()) {
      End& from = active.sent.empty() ? passive : active;
      End& to = active.sent.empty() ? active : passive;
      const Message message = from.sent.front();
      from.sent.pop_front();
      const int times = cut ? 0 : carried == odd ? copies : 1;
      ++carried;
      for (int i = 0; i < times; ++i) deliver(to, message);
    }
  }
  void deliver(End& to, const Message& message) {
    std::array<u8, kMessageBytes> bytes;
    encode(message, bytes);
    Message decoded;
    ASSERT_TRUE(decode(bytes, decoded));
    if (&to == &passive && to.connection.state() == State::idle) {
      if (decoded.kind != Kind::request && decoded.kind != Kind::datagram_request) return;
      to.connection.called(decoded);
      if (accepts) {
        Message reply;
        reply.queue_pair = 0x5678;
        EXPECT_TRUE(to.connection.accept(reply, now));
      }
      return;
    }
    to.connection.arrived(decoded, now);
  }
};

constexpr u64 kSecond = 1'000'000'000;

TEST(CmConnection, ConnectsAndEndsWhateverMessageIsLostOrDoubled) {
  // Five messages where nothing goes wrong: REQ, REP, RTU, DREQ, DREP.
  for (const int copies : {0, 2}) {
    for (int odd = 0; odd < 5; ++odd) {
      SCOPED_TRACE(testing::Message() << "message " << odd << " arrives " << copies << " times");
      Wire wire;
      wire.odd = odd;
      wire.copies = copies;
      ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
      wire.run(2 * kSecond);
      EXPECT_EQ(wire.active.connection.state(), State::established);
      EXPECT_EQ(wire.passive.connection.state(), State::established);
      EXPECT_EQ(wire.active.told, (std::vector<Told>{{Happening::replied, 0}}));
      EXPECT_EQ(wire.passive.told, (std::vector<Told>{{Happening::established, 0}}));
      ASSERT_TRUE(wire.active.connection.disconnect(wire.now));
      wire.run(wire.now + 2 * kSecond);
      EXPECT_EQ(wire.active.connection.state(), State::closed);
      EXPECT_EQ(wire.passive.connection.state(), State::closed);
      EXPECT_EQ(wire.active.times(Happening::disconnected), 1);
      EXPECT_EQ(wire.passive.times(Happening::disconnected), 1);
      wire.run(wire.now + 2 * Connection::kClosedNs);
      EXPECT_EQ(wire.active.connection.state(), State::forgotten);
      EXPECT_EQ(wire.passive.connection.state(), State::forgotten);
      EXPECT_EQ(wire.active.told.size(), 2U);
      EXPECT_EQ(wire.passive.told.size(), 2U);
    }
  }
}

TEST(CmConnection, GivesUpAPeerThatSaysNothing) {
  Wire wire;
  wire.cut = true;
  ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
  wire.run(7 * kSecond);
  EXPECT_TRUE(wire.active.told.empty());
  EXPECT_EQ(wire.carried, Connection::kTries);
  wire.run(8 * kSecond);
  EXPECT_EQ(wire.active.told, (std::vector<Told>{{Happening::unreachable, -ETIMEDOUT}}));
}

TEST(CmConnection, WaitsForAProgramThatIsSlowToAccept) {
  Wire wire;
  wire.accepts = false;
  ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
  wire.run(100 * kSecond);
  EXPECT_EQ(wire.active.connection.state(), State::calling);
  EXPECT_TRUE(wire.active.told.empty());
  Message reply;
  ASSERT_TRUE(wire.passive.connection.accept(reply, wire.now));
  wire.run(wire.now + kSecond);
  EXPECT_EQ(wire.passive.connection.state(), State::established);
  // And gives up once nobody says any more that it is slow.
  Wire dies;
  dies.accepts = false;
  ASSERT_TRUE(dies.active.connection.call(dies.request(), dies.now));
  dies.run(20 * kSecond);
  dies.cut = true;
  dies.run(40 * kSecond);
  EXPECT_EQ(dies.active.told, (std::vector<Told>{{Happening::unreachable, -ETIMEDOUT}}));
}

TEST(CmConnection, RejectionCarriesItsReasonAndDataAlsoAfterLoss) {
  for (const int odd : {-1, 1}) {
    Wire wire;
    wire.odd = odd;
    wire.copies = 0;
    wire.accepts = false;
    ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
    wire.run(kSecond / 10);
    const std::vector<u8> data = {1, 2, 3};
    ASSERT_TRUE(wire.passive.connection.reject(kConsumer, data, wire.now));
    EXPECT_FALSE(wire.passive.connection.accept({}, wire.now));
    wire.run(2 * kSecond);
    EXPECT_EQ(wire.active.told, (std::vector<Told>{{Happening::rejected, kConsumer}}));
    EXPECT_EQ(wire.active.last.private_data[2], 3);
    EXPECT_TRUE(wire.passive.told.empty());
  }
}

TEST(CmConnection, ProcessThatHasGoneIsNoticedBeforeAnyTimeOut) {
  Wire wire;
  ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
  wire.run(kSecond);
  wire.cut = true;
  wire.active.connection.peer_has_gone(wire.now);
  wire.run(wire.now + Connection::kLastWordsNs);
  EXPECT_EQ(wire.active.times(Happening::disconnected), 1);
  Wire calls;
  calls.accepts = false;
  ASSERT_TRUE(calls.active.connection.call(calls.request(), calls.now));
  calls.run(kSecond);
  calls.active.connection.peer_has_gone(calls.now);
  calls.passive.connection.peer_has_gone(calls.now);
  calls.cut = true;
  calls.run(calls.now + Connection::kLastWordsNs);
  EXPECT_EQ(calls.active.told, (std::vector<Told>{{Happening::unreachable, -ETIMEDOUT}}));
  // The program of the other side learns it when it answers.
  ASSERT_TRUE(calls.passive.connection.accept({}, calls.now));
  EXPECT_EQ(calls.passive.told, (std::vector<Told>{{Happening::unreachable, -ETIMEDOUT}}));
}

// The notice of its end and its last message come by two ways, in any order.
TEST(CmConnection, LastMessagesOfAProcessThatHasGoneDoNotHideThatItHas) {
  const auto accepting = [](End& end) {
    Message request;
    request.kind = Kind::request;
    request.local_id = 7;
    end.connection.called(request);
    EXPECT_TRUE(end.connection.accept({}, end.now));
    end.connection.peer_has_gone(end.now);
  };
  const auto last_words = [](End& end) { end.connection.expire(end.now + Connection::kLastWordsNs); };
  const std::vector<Told> whole = {{Happening::established, 0}, {Happening::disconnected, 0}};
  End ready{1}, data{2}, patience{3};
  for (End* end : {&ready, &data, &patience}) accepting(*end);

  Message message;
  message.kind = Kind::ready;
  ready.connection.arrived(message, ready.now);
  last_words(ready);
  EXPECT_EQ(ready.told, whole);

  EXPECT_TRUE(data.connection.established_by_data());
  last_words(data);
  EXPECT_EQ(data.told, whole);

  message.kind = Kind::patience;
  message.service_timeout = Connection::kServiceTimeout;
  patience.connection.arrived(message, patience.now);
  last_words(patience);
  EXPECT_EQ(patience.told, (std::vector<Told>{{Happening::unreachable, -ETIMEDOUT}}));
}

TEST(CmConnection, EndOfAnIdTellsThePeerAndNothingMoreToTheProgram) {
  Wire wire;
  ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
  wire.run(kSecond);
  wire.active.connection.leave(wire.now);
  wire.run(2 * kSecond);
  EXPECT_EQ(wire.passive.times(Happening::disconnected), 1);
  EXPECT_EQ(wire.active.times(Happening::disconnected), 0);
  // While the peer's program has not answered.
  Wire calls;
  calls.accepts = false;
  ASSERT_TRUE(calls.active.connection.call(calls.request(), calls.now));
  calls.run(kSecond / 10);
  calls.passive.connection.leave(calls.now);
  calls.run(kSecond);
  EXPECT_EQ(calls.active.told, (std::vector<Told>{{Happening::rejected, kConsumer}}));
}

TEST(CmConnection, BothEndsMayDisconnectAtOnce) {
  Wire wire;
  ASSERT_TRUE(wire.active.connection.call(wire.request(), wire.now));
  wire.run(kSecond);
  ASSERT_TRUE(wire.active.connection.disconnect(wire.now));
  ASSERT_TRUE(wire.passive.connection.disconnect(wire.now));
  EXPECT_FALSE(wire.passive.connection.disconnect(wire.now));
  wire.run(2 * kSecond);
  EXPECT_EQ(wire.active.times(Happening::disconnected), 1);
  EXPECT_EQ(wire.passive.times(Happening::disconnected), 1);
}

TEST(CmConnection, DatagramPeersAskOnceAndAreAnsweredAgainAfterLoss) {
  for (int odd = -1; odd < 2; ++odd) {
    Wire wire;
    wire.odd = odd;
    wire.copies = 0;
    Message request;
    request.kind = Kind::datagram_request;
    ASSERT_TRUE(wire.active.connection.call(request, wire.now));
    wire.run(2 * kSecond);
    EXPECT_EQ(wire.active.told, (std::vector<Told>{{Happening::established, 0}}));
    EXPECT_EQ(wire.active.last.queue_pair, 0x5678U);
    EXPECT_TRUE(wire.passive.told.empty());
    EXPECT_FALSE(wire.active.connection.disconnect(wire.now));
  }
}

TEST(CmConnection, CallsWithoutMeaningAreRefused) {
  End end(1);
  EXPECT_FALSE(end.connection.accept({}, 1));
  EXPECT_FALSE(end.connection.reject(kConsumer, {}, 1));
  EXPECT_FALSE(end.connection.ready(1));
  EXPECT_FALSE(end.connection.disconnect(1));
  EXPECT_FALSE(end.connection.established_by_data());
  ASSERT_TRUE(end.connection.call({}, 1));
  EXPECT_FALSE(end.connection.call({}, 1));
  EXPECT_FALSE(end.connection.disconnect(1));
}

}  // namespace
}  // namespace doorbell::cm
