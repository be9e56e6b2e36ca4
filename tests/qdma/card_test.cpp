// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The client library's objects, and how it puts a transfer into calls.
#include <doorbell/qdma/card.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "errors.hpp"
#include "qdma/driver.hpp"
#include "qdma/flow/transfers.hpp"
#include "qdma/peer/socket_driver.hpp"
#include "qdma/server/message.hpp"
#include "system/clock.hpp"

namespace doorbell::qdma {

namespace {

using namespace service;

TEST(Calls, BothQueuePairsWorkInEveryCallAndNoCallIsTooLong) {
  const u64 half = 5ull << 30;
  const std::array<Segment, 2> segments = {{{0, 0, half}, {1, half, half + 1}}};
  const auto calls =
      calls_of({Direction::host_to_card, 7, 2 * half + 1, 0, kDdrBase, 2 * half + 1}, segments);
  std::array<u64, 2> next = {0, half};
  for (const Transfer& c : calls) {
    u64 total = 0;
    for (u32 i = 0; i < c.count; ++i) {
      const SubXfer& x = c.xfers[i];
      EXPECT_EQ(x.buf_offset, next[x.qpair_index]);
      EXPECT_EQ(x.dev_addr, kDdrBase + x.buf_offset);
      EXPECT_EQ(x.buf_offset % kGranule, 0u);
      EXPECT_EQ(x.buf_fd, 7);
      next[x.qpair_index] += x.length;
      total += x.length;
    }
    EXPECT_LE(total, kMaxCallBytes);
    EXPECT_EQ(c.count, 2u);
  }
  EXPECT_EQ(next, (std::array<u64, 2>{half, 2 * half + 1}));
}

TEST(Calls, OneQueuePairAloneFillsItsCalls) {
  const std::array<Segment, 1> segments = {{{1, 0, kMaxCallBytes + 1}}};
  const auto calls =
      calls_of({Direction::card_to_host, 7, kMaxCallBytes + 1, 0, kDdrBase, kMaxCallBytes + 1}, segments);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].xfers[0].length, kMaxCallBytes);
  EXPECT_EQ(calls[1].xfers[0].length, 1u);
  EXPECT_EQ(calls[1].xfers[0].qpair_index, 1u);
}

TEST(Objects, AnEmptyBufferClosesNothing) {
  const int input = fcntl(0, F_GETFD);
  {
    Buffer none;
    EXPECT_EQ(none.fd(), -1);
    Buffer moved(std::move(none));
    none = std::move(moved);
  }
  EXPECT_EQ(fcntl(0, F_GETFD), input);
}

TEST(Objects, ABufferIsMappedAndGoesWithItsObject) {
  Card card = Card::open("model");
  int fd = -1;
  {
    Buffer b = card.create_buffer(8192);
    fd = b.fd();
    EXPECT_EQ(b.bytes(), 8192u);
    EXPECT_EQ(b.granule(), kGranule);
    b.data()[8191] = 1;
    Buffer c = std::move(b);
    EXPECT_EQ(b.fd(), -1);
    EXPECT_EQ(c.data()[8191], 1);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(Objects, NoBackEndIsReplacedByAnother) {
  test::expect_says(test::error_of([] { static_cast<void>(Card::open("modle")); }),
                    "no back end of this build");
  test::expect_says(
      test::error_of([] { static_cast<void>(Card::open("server:/nowhere/socket")); }, ExitCode::absent),
      "doorbell card serve");
  test::expect_says(test::error_of([] { static_cast<void>(Card::open("kernel:/dev/slash_qdma_ctl_none")); },
                                   ExitCode::absent),
                    "No such file");
}

TEST(Objects, OnePlainCallMovesThereAndBack) {
  Card card = Card::open("model");
  EXPECT_EQ(card.kind(), "model");
  TransferDescriptor both = card.both_channels();
  const u64 n = 4 << 20;
  Buffer out = card.create_buffer(n), in = both.create_buffer(n);
  for (u64 i = 0; i < n; ++i) out.data()[i] = static_cast<u8>(i * 7 >> 3);
  for (const u64 bytes : {u64{1}, u64{4097}, n}) {
    std::memset(in.data(), 0xee, n);
    const TransferResult w = both.transfer(Direction::host_to_card, out, 0, kDdrBase + 5, bytes);
    EXPECT_EQ(w.error, 0);
    EXPECT_EQ(w.bytes, bytes);
    const TransferResult r = both.transfer(Direction::card_to_host, in, 0, kDdrBase + 5, bytes);
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(r.bytes, bytes);
    EXPECT_EQ(std::memcmp(in.data(), out.data(), bytes), 0);
    if (bytes < n) {
      EXPECT_EQ(in.data()[bytes], 0xee);
    }
    if (bytes == n) {
      EXPECT_EQ(r.parts.size(), 2u);
    }
  }
}

TEST(Objects, TransfersThatCannotBeAreRefusedBeforeAnythingMoves) {
  Card card = Card::open("model");
  TransferDescriptor both = card.both_channels();
  Buffer b = card.create_buffer(8192);
  const auto error = [&](u64 offset, u64 address, u64 bytes) {
    const TransferResult r = both.transfer(Direction::card_to_host, b, offset, address, bytes);
    EXPECT_EQ(r.bytes, 0u);
    return r.error;
  };
  EXPECT_EQ(error(0, kDdrBase, 0), EINVAL);
  EXPECT_EQ(error(1, kDdrBase, 1), EINVAL);
  EXPECT_EQ(error(4096, kDdrBase, 4097), EINVAL);
  EXPECT_EQ(error(~u64{4095}, kDdrBase, 1), EINVAL);
  EXPECT_EQ(error(0, 0x300'0000'0000, 1), EFAULT);
  EXPECT_EQ(error(0, kDdrBase + kDdrBytes - 1, 2), EFAULT);
  EXPECT_EQ(error(0, kPdiBase, 4096), EFAULT);
  EXPECT_EQ(both.transfer(Direction::card_to_host, Buffer(), 0, kDdrBase, 1).error, EBADF);
}

/// The other end of a socket driver, by hand.
class Peer {
 public:
  Peer() {
    int s[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
    theirs = Descriptor(s[0]);
    ours = Descriptor(s[1]);
  }
  /// Answers the next `n` requests with `answer(header)`; sends nothing for one that gives no header.
  template <class Fn>
  void answer(u32 n, Fn answer) {
    thread = std::thread([this, n, answer]() mutable {
      for (u32 i = 0; i < n; ++i) {
        std::array<u8, wire::kMaxMessage> bytes{};
        if (recv(ours.get(), bytes.data(), bytes.size(), 0) <= 0) return;
        wire::RequestHeader h;
        std::memcpy(&h, bytes.data(), sizeof h);
        answer(h, std::span(bytes).subspan(sizeof h, h.bytes));
      }
    });
  }
  void reply(const wire::RequestHeader& h, i64 result, std::span<const u8> structure) {
    const auto out =
        encode_reply({.bytes = static_cast<u32>(structure.size()), .sequence = h.sequence, .result = result},
                     structure, {});
    EXPECT_EQ(send_message(ours.get(), out, -1), 0);
  }
  ~Peer() {
    if (thread.joinable()) thread.join();
  }
  Descriptor theirs, ours;
  std::thread thread;
};

TEST(SocketDriver, AnotherVersionIsRefusedByName) {
  Peer peer;
  peer.answer(1, [&](const wire::RequestHeader& h, std::span<const u8>) {
    const wire::Hello other{.version = 9};
    peer.reply(h, -EPROTO, std::span(reinterpret_cast<const u8*>(&other), sizeof other));
  });
  test::expect_says(test::error_of([&] { SocketDriver d(std::move(peer.theirs), "server:test"); }),
                    "version 9");
}

TEST(SocketDriver, AServerThatDiesIsEnodevForEveryWaiter) {
  Peer peer;
  peer.answer(4, [&, n = 0](const wire::RequestHeader& h, std::span<const u8> structure) mutable {
    if (h.number == wire::kHello) peer.reply(h, 0, structure);
    else if (++n == 3) peer.ours.reset();
  });
  SocketDriver d(std::move(peer.theirs), "server:test");
  std::array<i64, 3> results{};
  std::vector<std::thread> threads;
  for (i64& r : results)
    threads.emplace_back([&] {
      Info i;
      r = static_cast<Driver&>(d).call(-1, kCallInfo, std::span(reinterpret_cast<u8*>(&i), sizeof i)).result;
    });
  for (auto& t : threads) t.join();
  for (const i64 r : results) EXPECT_EQ(r, -ENODEV);
  Info i;
  EXPECT_EQ(
      static_cast<Driver&>(d).call(-1, kCallInfo, std::span(reinterpret_cast<u8*>(&i), sizeof i)).result,
      -ENODEV);
}

TEST(SocketDriver, RepliesInAnotherOrderReachTheirCallers) {
  Peer peer;
  std::vector<std::pair<wire::RequestHeader, std::vector<u8>>> held;
  peer.answer(5, [&](const wire::RequestHeader& h, std::span<const u8> structure) {
    if (h.number == wire::kHello) return peer.reply(h, 0, structure);
    held.emplace_back(h, std::vector<u8>(structure.begin(), structure.end()));
    if (held.size() < 4) return;
    for (auto it = held.rbegin(); it != held.rend(); ++it) peer.reply(it->first, 0, it->second);
  });
  SocketDriver d(std::move(peer.theirs), "server:test");
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      QpairOp op{.qid = t, .op = 0};
      EXPECT_EQ(static_cast<Driver&>(d)
                    .call(-1, kCallQpairOp, std::span(reinterpret_cast<u8*>(&op), sizeof op))
                    .result,
                0);
      EXPECT_EQ(op.qid, t);
    });
  for (auto& t : threads) t.join();
}

TEST(SocketDriver, ADeadlineHoldsAlsoIfTheServerNeverAnswers) {
  Peer peer;
  peer.answer(2, [&](const wire::RequestHeader& h, std::span<const u8> structure) {
    if (h.number == wire::kHello) peer.reply(h, 0, structure);
  });
  SocketDriver d(std::move(peer.theirs), "server:test");
  Transfer t;
  t.count = 1;
  const u64 begin = wall_ns();
  EXPECT_EQ(
      d.call(-1, kCallTransfer, std::span(reinterpret_cast<u8*>(&t), sizeof t), {.deadline_ns = 10'000'000})
          .result,
      -ETIMEDOUT);
  EXPECT_GE(wall_ns() - begin, 10'000'000u);
}

}  // namespace

}  // namespace doorbell::qdma
