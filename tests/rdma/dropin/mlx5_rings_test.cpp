// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// ConnectX's rings in front of a NIC's queues, from the side of a program that writes WQEs itself: doorbell's
// own queue pair. The queues behind them are a table.

#include "rdma/dropin/mlx5_rings.hpp"

#include <doorbell/rdma/queue_pair.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <numeric>
#include <string>
#include <vector>

namespace doorbell::dropin {
namespace {

using namespace doorbell::rdma;

struct Posted {
  roce::SendRequest request;
  std::vector<roce::Sge> sges;
  std::vector<u8> inlined;
};

/// A queue pair that keeps what it is given, up to `free` requests.
class Table final : public roce::QueuePair {
 public:
  u32 number() const override { return 0x77; }
  roce::Errno modify(const roce::QueuePairAttributes&, u32) override { return 0; }
  roce::QueuePairAttributes attributes() const override { return {}; }
  roce::State state() const override { return roce::State::rts; }
  roce::Errno post(const roce::SendRequest& request, std::span<const roce::Sge> sges) override {
    if (sends.size() == free) return ENOMEM;
    Posted p{.request = request, .sges = {sges.begin(), sges.end()}, .inlined = {}};
    if ((request.flags & roce::kInline) != 0) {
      const auto* const bytes = reinterpret_cast<const u8*>(sges[0].address);
      p.inlined.assign(bytes, bytes + sges[0].length);
    }
    sends.push_back(std::move(p));
    return 0;
  }
  roce::Errno post_receive(u64 id, std::span<const roce::Sge> sges) override {
    if (receives.size() == free) return ENOMEM;
    receives.push_back({id, {sges.begin(), sges.end()}});
    return 0;
  }
  u32 room() const override { return static_cast<u32>(free - sends.size()); }
  void fail(u64 id, roce::Status status) override { failed.push_back({id, status}); }
  roce::Counters counters() const override { return {}; }

  std::size_t free = 1000;
  std::deque<Posted> sends;
  std::deque<std::pair<u64, std::vector<roce::Sge>>> receives;
  std::vector<std::pair<u64, roce::Status>> failed;
};

class Answers final : public roce::CompletionQueue {
 public:
  explicit Answers(u32 entries) : entries_(entries) {}
  std::size_t poll(std::span<roce::Completion> into) override {
    const std::size_t n = std::min(into.size(), ready.size());
    std::copy_n(ready.begin(), n, into.begin());
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(n));
    return n;
  }
  void arm(bool) override {}
  void after_each(std::function<void()>) override {}
  u32 entries() const override { return entries_; }
  roce::Errno resize(u32) override { return EINVAL; }
  std::deque<roce::Completion> ready;

 private:
  u32 entries_;
};

using Driver = rdma::QueuePair<OneLane, Mlx5>;

/// The program's side of the rings, made from their layout as the mlx5dv back end makes it.
class Rig : public testing::Test {
 protected:
  static constexpr u32 kRequests = 8, kInline = 100;
  Rig() {
    m_.sq = rings.layout().send;
    m_.rq = rings.layout().receive;
    m_.cq = sent.layout().entries;
    m_.recv_cq = received.layout().entries;
    m_.qp_record = rings.layout().record;
    m_.cq_record = sent.layout().record;
    m_.recv_cq_record = received.layout().record;
    m_.sq_doorbell = rings.layout().doorbell;
    m_.sq_units = rings.layout().send_blocks;
    m_.sq_requests = kRequests;
    m_.rq_entries = rings.layout().receive_entries;
    m_.cq_entries = sent.layout().count;
    m_.recv_cq_entries = received.layout().count;
    m_.track_entries = power_of_two_from(m_.sq_units + 1);
    m_.qpn = table.number();
    m_.max_inline = kInline;
    track_.resize(m_.track_entries);
    m_.track = track_.data();
    state_ = initial_state(m_);
  }
  /// Posts `wr` and rings.
  void post(const WorkRequest& wr) {
    Driver qp(state_);
    ASSERT_NE(qp.room(), 0u);
    qp.post(OneLane{}, 1, [&](u32) { return wr; });
    qp.ring(OneLane{});
    state_ = qp.state();
  }
  /// The NIC ends its first request.
  void complete(roce::Status status = roce::Status::success) {
    const Posted p = table.sends.front();
    table.sends.pop_front();
    if ((p.request.flags & roce::kSignaled) == 0 && status == roce::Status::success) return;
    answers.ready.push_back({.id = p.request.id, .status = status, .queue_pair = table.number()});
  }

  Table table;
  Answers answers{2 * kRequests}, receive_answers{16};
  Mlx5QueueRings rings{table, kRequests, 4, kInline};
  Mlx5CompletionRing sent{answers}, received{receive_answers};
  QueuePairMemory m_;
  std::vector<Word16> track_;
  QueuePairState state_;
};

TEST_F(Rig, EachOperationArrivesAsItWasPosted) {
  WorkRequest write{.op = Op::write_imm,
                    .fence = true,
                    .solicited = true,
                    .bytes = 4096,
                    .local = 0x1000,
                    .lkey = 0x11,
                    .rkey = 0x22,
                    .remote = 0xABCDEF0123456789,
                    .imm = 0x01020304};
  post(write);
  WorkRequest add{.op = Op::fetch_add,
                  .bytes = 8,
                  .local = 0x2000,
                  .lkey = 0x33,
                  .rkey = 0x44,
                  .remote = 0x8000,
                  .operand = 7};
  post(add);
  WorkRequest swap{.op = Op::compare_swap,
                   .bytes = 8,
                   .local = 0x2008,
                   .lkey = 0x33,
                   .rkey = 0x44,
                   .remote = 0x8008,
                   .operand = 8,
                   .compare = 9};
  post(swap);
  WorkRequest read{.op = Op::read,
                   .signalled = false,
                   .bytes = 12,
                   .local = 0x3000,
                   .lkey = 0x33,
                   .rkey = 0x44,
                   .remote = 0x9000};
  post(read);
  post({.op = Op::send, .bytes = 0});
  EXPECT_TRUE(rings.serve());
  EXPECT_FALSE(rings.serve());
  ASSERT_EQ(table.sends.size(), 5u);
  const auto& w = table.sends[0];
  EXPECT_EQ(w.request.opcode, roce::WrOpcode::write_immediate);
  EXPECT_EQ(w.request.flags, roce::kSignaled | roce::kFence | roce::kSolicited);
  EXPECT_EQ(w.request.remote_address, write.remote);
  EXPECT_EQ(w.request.remote_key, 0x22u);
  // The immediate is kept as its bytes travel.
  u8 bytes[4];
  std::memcpy(bytes, &w.request.immediate_or_key, 4);
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[3], 4);
  ASSERT_EQ(w.sges.size(), 1u);
  EXPECT_EQ(w.sges[0].address, 0x1000u);
  EXPECT_EQ(w.sges[0].length, 4096u);
  EXPECT_EQ(w.sges[0].key, 0x11u);
  EXPECT_EQ(table.sends[1].request.opcode, roce::WrOpcode::fetch_add);
  EXPECT_EQ(table.sends[1].request.compare_or_add, 7u);
  EXPECT_EQ(table.sends[2].request.opcode, roce::WrOpcode::compare_swap);
  EXPECT_EQ(table.sends[2].request.compare_or_add, 9u);
  EXPECT_EQ(table.sends[2].request.swap, 8u);
  EXPECT_EQ(table.sends[3].request.opcode, roce::WrOpcode::read);
  EXPECT_EQ(table.sends[3].request.flags, 0);
  EXPECT_EQ(table.sends[4].request.opcode, roce::WrOpcode::send);
  EXPECT_TRUE(table.sends[4].sges.empty());
}

TEST_F(Rig, ManyTurnsOfTheRingsWithInlinedDataAndWithout) {
  std::vector<u8> data(kInline);
  std::iota(data.begin(), data.end(), u8{1});
  u32 completions = 0;
  constexpr u32 kRounds = 5000;
  for (u32 n = 0; n < kRounds; ++n) {
    // The bytes of an inlined payload wrap around the ring's end sooner or later.
    const u32 bytes = 1 + n % kInline;
    const bool inlined = n % 3 != 0;
    post({.op = Op::write,
          .signalled = n % 2 == 0,
          .inlined = inlined,
          .bytes = bytes,
          .local = 0x1000,
          .lkey = 5,
          .rkey = 6,
          .remote = n,
          .payload = inlined ? data.data() : nullptr});
    ASSERT_TRUE(rings.serve());
    ASSERT_EQ(table.sends.size(), 1u);
    ASSERT_EQ(table.sends[0].request.remote_address, n);
    if (inlined) {
      ASSERT_TRUE(std::equal(table.sends[0].inlined.begin(), table.sends[0].inlined.end(), data.begin(),
                             data.begin() + bytes));
    } else {
      ASSERT_EQ(table.sends[0].sges[0].length, bytes);
    }
    complete();
    (void)sent.serve();
    Driver qp(state_);
    const auto polled = qp.poll(OneLane{});
    completions += polled.count;
    if (polled.count != 0) {
      ASSERT_EQ(polled.mine.status, rdma::Status::ok);
    }
    state_ = qp.state();
  }
  Driver qp(state_);
  EXPECT_EQ(completions, kRounds / 2);
  EXPECT_EQ(qp.protocol() + qp.skipped() + qp.duplicated(), 0u);
}

TEST_F(Rig, RequestsWaitWhileTheNicIsFull) {
  table.free = 3;
  for (u32 n = 0; n < kRequests; ++n)
    post({.op = Op::write, .bytes = 8, .local = 0x1000, .lkey = 5, .rkey = 6, .remote = n});
  EXPECT_TRUE(rings.serve());
  EXPECT_EQ(table.sends.size(), 3u);
  EXPECT_FALSE(rings.serve());
  for (u32 n = 0; n < kRequests; ++n) {
    ASSERT_FALSE(table.sends.empty());
    EXPECT_EQ(table.sends.front().request.remote_address, n);
    complete();
    (void)rings.serve();
  }
  EXPECT_TRUE(table.sends.empty());
}

TEST_F(Rig, ReceivesAndTheirCompletions) {
  for (u32 n = 0; n < 40; ++n) {
    Driver qp(state_);
    ASSERT_NE(qp.receive_room(), 0u);
    qp.post_receives(OneLane{}, 1, [&](u32) {
      return ReceiveRequest{.local = 0x1000 + n, .lkey = 9, .bytes = n % 4 == 0 ? 0u : 64u};
    });
    qp.ring_receives(OneLane{});
    ASSERT_TRUE(rings.serve());
    ASSERT_EQ(table.receives.size(), 1u);
    const auto [id, sges] = table.receives.front();
    table.receives.pop_front();
    ASSERT_EQ(sges.size(), n % 4 == 0 ? 0u : 1u);
    if (!sges.empty()) {
      ASSERT_EQ(sges[0].address, 0x1000 + n);
    }
    receive_answers.ready.push_back({.id = id,
                                     .opcode = roce::WcOpcode::receive,
                                     .flags = roce::kHasImmediate,
                                     .bytes = n,
                                     .immediate_or_key = be32(1000 + n),
                                     .queue_pair = table.number()});
    ASSERT_TRUE(received.serve());
    const auto polled = qp.poll_receives(OneLane{});
    ASSERT_EQ(polled.count, 1u);
    EXPECT_EQ(polled.mine.bytes, n);
    EXPECT_EQ(polled.mine.imm, 1000 + n);
    state_ = qp.state();
  }
}

TEST_F(Rig, ErrorsAreReportedByTheirStatus) {
  for (const auto status :
       {roce::Status::remote_access, roce::Status::retry_exceeded, roce::Status::flushed}) {
    post({.op = Op::write, .signalled = false, .bytes = 8, .local = 0x1000, .lkey = 5, .rkey = 6});
    ASSERT_TRUE(rings.serve());
    complete(status);
    ASSERT_TRUE(sent.serve());
    const Word16* const entry = sent.layout().entries + (state_.progress.cq.slot * Mlx5::kCqeParts);
    const auto c = Mlx5::decode_cqe(entry[Mlx5::kCqePartA], entry[Mlx5::kCqePartB]);
    EXPECT_EQ(static_cast<int>(c.status), static_cast<int>(status));
    state_.progress.cq = advance(state_.progress.cq, 1, 1, 0);
  }
}

TEST_F(Rig, ARequestThatMeansNothingEndsTheQueuePair) {
  // An opcode that no ConnectX knows, in the next block.
  rings.layout().send[0] = swapped({{0x000000EE, table.number() << 8 | 2, 0, 0}});
  store_release(&rings.layout().record[1], be32(1));
  store64_release(rings.layout().doorbell, 1);
  EXPECT_TRUE(rings.serve());
  ASSERT_EQ(table.failed.size(), 1u);
  EXPECT_EQ(table.failed[0].second, roce::Status::local_operation);
  EXPECT_TRUE(table.sends.empty());
}

TEST_F(Rig, ACounterThatClaimsMoreThanTheRingHoldsEndsTheQueuePair) {
  store_release(&rings.layout().record[1], be32(rings.layout().send_blocks + 1));
  store64_release(rings.layout().doorbell, 1);
  (void)rings.serve();
  EXPECT_EQ(table.failed.size(), 1u);
  EXPECT_TRUE(table.sends.empty());
}

TEST_F(Rig, NothingIsTakenBeforeTheDoorbellRings) {
  Driver qp(state_);
  qp.post(OneLane{}, 1,
          [](u32) { return WorkRequest{.op = Op::write, .bytes = 8, .local = 1, .lkey = 5, .rkey = 6}; });
  store_release(&rings.layout().record[1], be32(1));
  EXPECT_FALSE(rings.serve());
  qp.ring(OneLane{});
  EXPECT_TRUE(rings.serve());
}

TEST_F(Rig, CompletionsWaitForTheirConsumer) {
  const u32 count = sent.layout().count;
  for (u32 n = 0; n < count + 5; ++n)
    answers.ready.push_back({.id = n & 0xFFFF, .queue_pair = table.number()});
  EXPECT_TRUE(sent.serve());
  EXPECT_EQ(answers.ready.size(), 6u) << "one entry stays free";
  EXPECT_FALSE(sent.serve());
  store_release(&sent.layout().record[0], be32(6));
  EXPECT_TRUE(sent.serve());
  EXPECT_TRUE(answers.ready.empty());
  // A consumer that claims entries which are not written yet is not believed.
  store_release(&sent.layout().record[0], be32(2 * count));
  answers.ready.resize(count);
  (void)sent.serve();
  const u32 free_entries = count - 1 - (count + 5 - 6);
  EXPECT_EQ(answers.ready.size(), count - free_entries);
}

}  // namespace
}  // namespace doorbell::dropin
