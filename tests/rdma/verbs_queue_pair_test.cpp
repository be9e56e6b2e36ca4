// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// VerbsQueuePair on a fake provider, which records what is posted and completes what a test asks it to.

#include <gtest/gtest.h>

#include "verbs_provider.hpp"

namespace doorbell::rdma {
namespace {

constexpr OneLane kLane;

class VerbsQueue : public testing::Test {
 protected:
  void post(u32 n, bool signalled = true) {
    q_.post(kLane, n, [&](u32) {
      WorkRequest r;
      r.signalled = signalled;
      r.bytes = 8;
      return r;
    });
  }
  void send(u32 n, bool signalled = true) {
    post(n, signalled);
    EXPECT_EQ(q_.ring(kLane), 1u);
  }
  void expect_done(u32 serial, Status status = Status::ok) {
    const auto d = q_.poll(kLane);
    ASSERT_EQ(d.count, 1u);
    EXPECT_EQ(d.serial, serial);
    EXPECT_EQ(static_cast<u32>(d.mine.status), static_cast<u32>(status));
    EXPECT_EQ(q_.completed(), serial);
  }
  void expect_nothing() { EXPECT_EQ(q_.poll(kLane).count, 0u); }

  MadeUpProvider p_;
  VerbsQueuePair q_{p_.state()};
};

TEST_F(VerbsQueue, RequestsBecomeWorkRequests) {
  const std::pair<Op, ibv_wr_opcode> ops[] = {{Op::write, IBV_WR_RDMA_WRITE},
                                              {Op::write_imm, IBV_WR_RDMA_WRITE_WITH_IMM},
                                              {Op::read, IBV_WR_RDMA_READ},
                                              {Op::send, IBV_WR_SEND},
                                              {Op::send_imm, IBV_WR_SEND_WITH_IMM},
                                              {Op::fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD},
                                              {Op::compare_swap, IBV_WR_ATOMIC_CMP_AND_SWP}};
  q_.post(kLane, std::size(ops), [&](u32 i) {
    WorkRequest r;
    r.op = ops[i].first;
    r.bytes = 8;
    r.local = 0x1000 + i;
    r.lkey = 0x2000 + i;
    r.remote = 0x3000 + i;
    r.rkey = 0x4000 + i;
    r.imm = 0x01020304;
    r.operand = 0x55;
    r.compare = 0x66;
    return r;
  });
  EXPECT_EQ(p_.posts, 0u) << "posted before ring()";
  EXPECT_EQ(q_.ring(kLane), 1u);
  EXPECT_EQ(p_.posts, 1u);
  ASSERT_EQ(p_.sent.size(), std::size(ops));
  for (u32 i = 0; i < std::size(ops); ++i) {
    const ibv_send_wr& wr = p_.sent[i];
    EXPECT_EQ(wr.opcode, ops[i].second);
    EXPECT_EQ(wr.send_flags, static_cast<u32>(IBV_SEND_SIGNALED));
    EXPECT_EQ(wr.num_sge, 1);
    EXPECT_EQ(p_.sent_sge[i].addr, 0x1000 + i);
    EXPECT_EQ(p_.sent_sge[i].lkey, 0x2000 + i);
    EXPECT_EQ(p_.sent_sge[i].length, 8u);
    EXPECT_EQ(wr.imm_data, htonl(0x01020304));
    EXPECT_EQ(is_atomic(ops[i].first) ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr, 0x3000 + i);
    EXPECT_EQ(is_atomic(ops[i].first) ? wr.wr.atomic.rkey : wr.wr.rdma.rkey, 0x4000 + i);
  }
  EXPECT_EQ(p_.sent[5].wr.atomic.compare_add, 0x55u);
  EXPECT_EQ(p_.sent[6].wr.atomic.compare_add, 0x66u);
  EXPECT_EQ(p_.sent[6].wr.atomic.swap, 0x55u);
}

TEST_F(VerbsQueue, FlagsInlineAndEmptyMessages) {
  const u8 payload[4] = {1, 2, 3, 4};
  WorkRequest r;
  r.signalled = false;
  r.fence = r.solicited = r.inlined = true;
  r.payload = payload;
  r.local = 0x1000;
  r.bytes = 4;
  q_.post(kLane, 1, [&](u32) { return r; });
  q_.post(kLane, 1, [](u32) { return WorkRequest{}; });
  q_.ring(kLane);
  ASSERT_EQ(p_.sent.size(), 2u);
  EXPECT_EQ(p_.sent[0].send_flags, static_cast<u32>(IBV_SEND_FENCE | IBV_SEND_SOLICITED | IBV_SEND_INLINE));
  EXPECT_EQ(p_.sent_sge[0].addr, reinterpret_cast<u64>(payload));
  EXPECT_EQ(p_.sent[1].num_sge, 0);
}

TEST_F(VerbsQueue, EachRingPostsWhatIsNew) {
  for (const u32 n : {3u, 1u, 7u, 2u}) {
    p_.sent.clear();
    send(n);
    EXPECT_EQ(p_.sent.size(), n);
  }
  EXPECT_EQ(q_.ring(kLane), 0u);
  EXPECT_EQ(p_.posts, 4u);
  EXPECT_EQ(q_.posted(), 13u);
  EXPECT_EQ(q_.room(), 51u);
}

TEST_F(VerbsQueue, ABatchIsAtMostTheBuffers) {
  VerbsQueuePair q(p_.state(5000));
  EXPECT_EQ(q.room(), VerbsBuffers::kRequests);
  q.post(kLane, 1000, [](u32) { return WorkRequest{}; });
  EXPECT_EQ(q.room(), VerbsBuffers::kRequests - 1000);
  q.post(kLane, 24, [](u32) { return WorkRequest{}; });
  EXPECT_EQ(q.room(), 0u);
  q.ring(kLane);
  EXPECT_EQ(p_.sent.size(), 1024u);
  EXPECT_EQ(q.room(), VerbsBuffers::kRequests);
}

TEST_F(VerbsQueue, UnsignalledOnesAreCovered) {
  send(7, false);
  send(1);
  EXPECT_EQ(q_.room(), 56u);
  expect_nothing();
  p_.complete_sent(7);
  expect_done(8);
  EXPECT_EQ(q_.room(), 64u);
  EXPECT_EQ(q_.skipped(), 0u);
}

TEST_F(VerbsQueue, CompletionsAreTakenSixteenAtATime) {
  send(40);
  for (u32 i = 0; i < 40; ++i) p_.complete_sent(i);
  for (u32 i = 1; i <= 40; ++i) expect_done(i);
  EXPECT_EQ(p_.polls, 3u);
  expect_nothing();
}

TEST_F(VerbsQueue, StateGoesOnInTheMiddleOfABuffer) {
  send(5);
  for (u32 i = 0; i < 5; ++i) p_.complete_sent(i);
  expect_done(1);
  expect_done(2);
  VerbsQueuePair next(q_.state());
  EXPECT_EQ(next.poll(kLane).serial, 3u);
  EXPECT_EQ(next.poll(kLane).serial, 4u);
  EXPECT_EQ(next.completed(), 4u);
  EXPECT_EQ(next.posted(), 5u);
}

TEST_F(VerbsQueue, SerialsWrap) {
  VerbsQueuePair::State s = p_.state();
  for (VerbsQueuePair::Counts* c : {&s.sends, &s.receives}) {
    c->posted = c->rung = c->completed = 0xfffffffe;
    c->signals = c->signals_in = 0x7ffffffe;
  }
  q_ = VerbsQueuePair(s);
  send(4);
  EXPECT_EQ(q_.posted(), 2u);
  for (u32 i = 0; i < 4; ++i) p_.complete_sent(i);
  for (const u32 serial : {0xffffffffu, 0u, 1u, 2u}) expect_done(serial);
  p_.complete_sent(0);
  expect_nothing();
  EXPECT_EQ(q_.duplicated(), 1u);
  EXPECT_EQ(q_.skipped() + q_.protocol(), 0u);
  EXPECT_EQ(q_.room(), 64u);
}

TEST_F(VerbsQueue, RepeatedCompletionsAreCounted) {
  send(4);
  p_.complete_sent(1);
  p_.complete_sent(1);
  p_.complete_sent(0);
  p_.complete_sent(2);
  expect_done(2);
  expect_done(3);
  expect_nothing();
  EXPECT_EQ(q_.duplicated(), 2u);
  EXPECT_EQ(q_.skipped(), 1u);
  EXPECT_EQ(q_.protocol(), 0u);
}

TEST_F(VerbsQueue, SkippedSignalsAreCounted) {
  send(2);         // 1, 2
  send(3, false);  // 3, 4, 5
  send(2);         // 6, 7
  p_.complete_sent(6);
  expect_done(7);
  EXPECT_EQ(q_.skipped(), 3u);  // 1, 2 and 6
  EXPECT_EQ(q_.duplicated() + q_.protocol(), 0u);
}

TEST_F(VerbsQueue, CompletionsOfNothingAreCounted) {
  send(2);
  post(1);  // not rung: it cannot have been completed
  p_.complete(p_.buffers.send[0].wr.wr_id + 2);
  p_.complete(p_.sent[1].wr_id + 100);
  expect_nothing();
  EXPECT_EQ(q_.protocol(), 2u);
  EXPECT_EQ(q_.completed(), 0u);
  p_.complete_sent(0);
  expect_done(1);
}

TEST_F(VerbsQueue, ErrorsOfUnsignalledRequestsCount) {
  send(2, false);
  send(1);
  p_.complete_sent(1, IBV_WC_REM_ACCESS_ERR);
  p_.complete_sent(2, IBV_WC_WR_FLUSH_ERR);
  expect_done(2, Status::remote_access);
  expect_done(3, Status::flushed);
  EXPECT_EQ(q_.skipped(), 0u);
}

TEST_F(VerbsQueue, RefusedRequestsAreReportedInOrderAfterTheOthers) {
  p_.refuse_at = 2;
  p_.refuse_with = ENOMEM;
  send(5);
  ASSERT_EQ(p_.sent.size(), 2u);
  EXPECT_EQ(q_.room(), 0u);
  expect_nothing();  // 1 and 2 are under way
  p_.complete_sent(0);
  expect_done(1);
  expect_nothing();
  p_.complete_sent(1);
  expect_done(2);
  for (const u32 serial : {3u, 4u, 5u}) {
    EXPECT_EQ(q_.room(), 0u);
    const auto d = q_.poll(kLane);
    EXPECT_EQ(d.count, 1u);
    EXPECT_EQ(d.serial, serial);
    EXPECT_EQ(d.mine.status, Status::local_qp_op);
    EXPECT_EQ(d.mine.vendor_error, static_cast<u32>(ENOMEM));
  }
  expect_nothing();
  EXPECT_EQ(q_.room(), 64u);
  // The queue goes on where it was.
  p_.refuse_at = -1;
  send(1);
  p_.complete_sent(2);
  expect_done(6);
  EXPECT_EQ(q_.skipped() + q_.duplicated() + q_.protocol(), 0u);
}

TEST_F(VerbsQueue, RefusedAfterUnsignalledOnes) {
  p_.refuse_at = 2;
  p_.refuse_with = EINVAL;
  send(3, false);  // no completion says when 1 and 2 are done
  expect_done(3, Status::local_qp_op);
  EXPECT_EQ(q_.room(), 64u);
}

TEST_F(VerbsQueue, AProviderThatNamesNoBadRequestHasRefusedAll) {
  p_.refuse_at = 0;
  p_.refuse_with = EINVAL;
  p_.names_bad = false;
  send(2);
  expect_done(1, Status::local_qp_op);
  expect_done(2, Status::local_qp_op);
  expect_nothing();
}

TEST_F(VerbsQueue, AnErrnoCountsWhereTheResultIsMinusOne) {
  p_.refuse_at = 0;
  p_.refuse_with = -1;
  errno = EIO;
  send(1);
  EXPECT_EQ(q_.poll(kLane).mine.vendor_error, static_cast<u32>(EIO));
}

TEST_F(VerbsQueue, ABrokenCompletionQueueEndsWhatIsOutstanding) {
  p_.poll_fails = -1;
  expect_nothing();  // nothing is outstanding
  send(3);
  expect_done(3, Status::fatal);
  expect_nothing();
}

TEST_F(VerbsQueue, ReceivesHaveTheirOwnCounts) {
  EXPECT_EQ(q_.receive_room(), 64u);
  q_.post_receives(kLane, 3, [](u32 i) { return ReceiveRequest{0x100 + i, 9, i * 64}; });
  EXPECT_EQ(q_.receive_room(), 61u);
  EXPECT_EQ(q_.ring_receives(kLane), 1u);
  EXPECT_EQ(q_.ring_receives(kLane), 0u);
  ASSERT_EQ(p_.received.size(), 3u);
  EXPECT_EQ(p_.received[0].num_sge, 0);  // nothing to write to
  EXPECT_EQ(p_.received[1].num_sge, 1);
  ibv_wc wc = {};
  wc.wr_id = p_.received[0].wr_id;
  wc.byte_len = 77;
  wc.wc_flags = IBV_WC_WITH_IMM;
  wc.imm_data = htonl(0xa0b0c0d0);
  p_.arrived.push_back(wc);
  wc.wr_id = p_.received[1].wr_id;
  wc.status = IBV_WC_WR_FLUSH_ERR;
  p_.arrived.push_back(wc);
  expect_nothing();
  const auto first = q_.poll_receives(kLane);
  EXPECT_EQ(first.count, 1u);
  EXPECT_EQ(first.serial, 1u);
  EXPECT_TRUE(first.mine.receive && first.mine.with_imm);
  EXPECT_EQ(first.mine.imm, 0xa0b0c0d0u);
  EXPECT_EQ(first.mine.bytes, 77u);
  const auto second = q_.poll_receives(kLane);
  EXPECT_EQ(second.mine.status, Status::flushed);
  EXPECT_FALSE(second.mine.with_imm) << "not valid in an error";
  EXPECT_EQ(q_.receives_posted(), 3u);
  EXPECT_EQ(q_.receives_completed(), 2u);
  EXPECT_EQ(q_.posted() + q_.completed(), 0u);
}

TEST_F(VerbsQueue, RefusedReceivesAreReported) {
  p_.refuse_at = 1;
  p_.refuse_with = ENOMEM;
  q_.post_receives(kLane, 2, [](u32) { return ReceiveRequest{}; });
  q_.ring_receives(kLane);
  EXPECT_EQ(q_.receive_room(), 0u);
  EXPECT_EQ(q_.poll_receives(kLane).count, 0u);
  ibv_wc wc = {};
  wc.wr_id = p_.received.at(0).wr_id;
  p_.arrived.push_back(wc);
  EXPECT_EQ(q_.poll_receives(kLane).serial, 1u);
  const auto refused = q_.poll_receives(kLane);
  EXPECT_EQ(refused.serial, 2u);
  EXPECT_EQ(refused.mine.status, Status::local_qp_op);
  EXPECT_TRUE(refused.mine.receive);
}

}  // namespace
}  // namespace doorbell::rdma
