// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Requests that the software NIC refuses, their status, and the queue pair's state afterwards.

#include <doorbell/error.hpp>

#include "rig.hpp"

namespace doorbell::rdma {
namespace {

template <class F>
class RdmaErrors : public ::testing::Test {
 protected:
  RdmaErrors() { p.emplace(rig.pair()); }
  /// Both ends from RESET again, with these options.
  void again(const ConnectionOptions& a = quick(), const ConnectionOptions& b = quick()) {
    p->a.object->reset();
    p->b.object->reset();
    Rig<F>::join(*p, a, b);
  }
  void expect(const WorkRequest& wr, Status status, QpState responder) {
    EXPECT_EQ(p->a.run(wr), status);
    EXPECT_EQ(p->a.object->state(), QpState::error);
    EXPECT_EQ(p->b.object->state(), responder);
    again();
  }
  /// One flush of a queue as the format tells it: `n` completions, or one that stands for all.
  void expect_flush(RawCq<F>& cq, u32 n, bool receive) {
    constexpr bool each = std::is_same_v<F, Mlx5> || std::is_same_v<F, Ernic>;
    for (u32 i = 0; i < (each ? n : 1); ++i) {
      const auto c = cq.wait();
      ASSERT_TRUE(c) << i;
      EXPECT_EQ(c->status, Status::flushed);
      EXPECT_EQ(c->flush_all, !each);
      if (each) {
        EXPECT_EQ(c->receive, receive);
      }
    }
    EXPECT_FALSE(cq.wait(0.01));
  }

  Rig<F> rig;
  Memory near{*rig.device, 8192}, far{*rig.device, 8192};
  std::optional<typename Rig<F>::Pair> p;
};
TYPED_TEST_SUITE(RdmaErrors, FormatsAlike);

TYPED_TEST(RdmaErrors, LocalMemory) {
  Memory constant(*this->rig.device, 4096, access::remote_read);
  WorkRequest wr = request(Op::write, this->near, this->far, 64);
  wr.lkey += 1;
  this->expect(wr, Status::local_protection, QpState::rts);
  wr.lkey = this->near.rkey();
  this->expect(wr, Status::local_protection, QpState::rts);
  wr = request(Op::write, this->near, this->far, 64, 8192 - 63);
  this->expect(wr, Status::local_protection, QpState::rts);
  wr = request(Op::send, this->near, this->far, 8193);
  this->expect(wr, Status::local_protection, QpState::rts);
  wr.local = ~u64{0} - 10;
  wr.bytes = 64;
  this->expect(wr, Status::local_protection, QpState::rts);
  wr = request(Op::read, constant, this->far, 64);
  this->expect(wr, Status::local_protection, QpState::rts);
  wr = request(Op::fetch_add, constant, this->far, 8);
  this->expect(wr, Status::local_protection, QpState::rts);
  EXPECT_EQ(this->p->a.run(request(Op::write, constant, this->far, 64)), Status::ok);
  EXPECT_GE(this->rig.counter("dma_faults"), 7u);
}

TYPED_TEST(RdmaErrors, RemoteMemory) {
  const Status refused = Status::remote_access;
  for (const Op op : {Op::write, Op::read, Op::fetch_add, Op::compare_swap}) {
    const u32 n = is_atomic(op) ? 8 : 64;
    WorkRequest wr = request(op, this->near, this->far, n);
    wr.rkey += 1;
    this->expect(wr, refused, QpState::error);
    wr.rkey = this->far.lkey();
    this->expect(wr, refused, QpState::error);
    wr = request(op, this->near, this->far, n, 0, 8192 - n + 8);
    this->expect(wr, refused, QpState::error);
    wr.remote = this->far.iova() - 8;
    this->expect(wr, refused, QpState::error);
    wr.remote = ~u64{0} - 7;  // the end of the range is beyond 2^64
    this->expect(wr, refused, QpState::error);
  }
  const auto last = request(Op::write, this->near, this->far, 64, 0, 8192 - 64);
  EXPECT_EQ(this->p->a.run(last), Status::ok);
}

TYPED_TEST(RdmaErrors, RightsOfMemoryAndOfTheQueuePair) {
  using namespace access;
  struct Case {
    Op op;
    u32 right;
  };
  for (const Case c : {Case{Op::write, remote_write}, Case{Op::read, remote_read},
                       Case{Op::fetch_add, remote_atomic}, Case{Op::compare_swap, remote_atomic}}) {
    Memory lacking(*this->rig.device, 4096, all & ~c.right);
    this->expect(request(c.op, this->near, lacking, 8), Status::remote_access, QpState::error);
    ConnectionOptions o = quick();
    o.access = all & ~c.right;
    this->again(quick(), o);
    this->expect(request(c.op, this->near, this->far, 8), Status::remote_access, QpState::error);
    o.access = c.right;
    this->again(quick(), o);
    EXPECT_EQ(this->p->a.run(request(c.op, this->near, this->far, 8)), Status::ok);
    this->again();
  }
}

TYPED_TEST(RdmaErrors, NothingIsMovedByARefusedRequest) {
  this->near.fill(1);
  WorkRequest wr = request(Op::write, this->near, this->far, 64, 0, 8192 - 63);
  this->expect(wr, Status::remote_access, QpState::error);
  for (u64 i = 0; i < 8192; ++i) ASSERT_EQ(this->far.data()[i], 0);
}

TYPED_TEST(RdmaErrors, ZeroLengthLooksAtNoKey) {
  WorkRequest wr = request(Op::write, this->near, this->far, 0);
  wr.rkey = 1;
  wr.remote = 1;
  EXPECT_EQ(this->p->a.run(wr), Status::ok);
  wr.op = Op::read;
  EXPECT_EQ(this->p->a.run(wr), Status::ok);
}

TYPED_TEST(RdmaErrors, MisalignedAtomics) {
  for (const Op op : {Op::fetch_add, Op::compare_swap})
    this->expect(request(op, this->near, this->far, 8, 0, 4), Status::remote_invalid_request, QpState::error);
}

TYPED_TEST(RdmaErrors, MoreReadsThanTheResponderTakes) {
  ConnectionOptions none = quick();
  none.max_rd_atomic = 0;
  this->again(quick(), none);
  this->expect(request(Op::read, this->near, this->far, 8), Status::remote_invalid_request, QpState::error);
}

TYPED_TEST(RdmaErrors, ReceiveTooSmall) {
  this->p->b.receive(buffer(this->far, 63));
  this->expect(request(Op::send, this->near, this->far, 64), Status::remote_invalid_request, QpState::error);
  this->p->b.receive(buffer(this->far, 63));
  (void)this->p->a.submit(request(Op::send, this->near, this->far, 64));
  const auto c = this->p->b.recv_cq.wait();
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->receive);
  EXPECT_EQ(c->status, Status::local_length);
}

TYPED_TEST(RdmaErrors, ReceiveIntoMemoryThatIsNotItsOwn) {
  Memory constant(*this->rig.device, 4096, access::remote_read);
  this->p->b.receive(buffer(constant, 64));
  (void)this->p->a.submit(request(Op::send, this->near, this->far, 64));
  const auto c = this->p->b.recv_cq.wait();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Status::local_protection);
  const auto s = this->p->a.cq.wait();
  ASSERT_TRUE(s);
  EXPECT_EQ(s->status, Status::remote_operation);
}

TYPED_TEST(RdmaErrors, NoReceivePosted) {
  for (const Op op : {Op::send, Op::write_imm}) {
    this->expect(request(op, this->near, this->far, 64), Status::rnr_retry_exceeded, QpState::rts);
    // The responder's timer is what is waited for: it comes in time.
    ConnectionOptions unlimited = quick();
    unlimited.rnr_retry = 7;
    this->again(unlimited, quick());
    (void)this->p->a.submit(request(op, this->near, this->far, 64));
    EXPECT_FALSE(this->p->a.cq.wait(0.02));
    this->p->b.receive(buffer(this->far, 64));
    const auto c = this->p->a.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, Status::ok);
    ASSERT_TRUE(this->p->b.recv_cq.wait());
    this->again();
  }
  EXPECT_GE(this->rig.counter("rnr_naks"), 8u);
}

TYPED_TEST(RdmaErrors, RnrWaitStopsNoOtherQueuePair) {
  ConnectionOptions slow = quick();
  slow.min_rnr_timer = 0;  // 655 ms
  this->again(quick(), slow);
  (void)this->p->a.submit(request(Op::send, this->near, this->far, 8));
  auto other = this->rig.loop();
  const u64 begin = wall_ns();
  EXPECT_EQ(other.run(request(Op::write, this->near, this->far, 8)), Status::ok);
  EXPECT_LT(wall_ns() - begin, 500'000'000u);
}

TYPED_TEST(RdmaErrors, ThereIsNoAnswer) {
  auto alone = RawQp<TypeParam>(*this->rig.device);
  alone.object->initialise(quick());
  QueuePairAddress unknown = alone.object->address();
  unknown.qpn = 0x7f0f0;
  alone.object->connect(unknown, quick());
  alone.begin();
  const u64 begin = wall_ns();
  EXPECT_EQ(alone.run(request(Op::write, this->near, this->far, 8)), Status::retry_exceeded);
  // The first try and three more, each with its time-out of 4.096 us * 2^8.
  EXPECT_GE(wall_ns() - begin, 4u * 1'048'576);
  EXPECT_EQ(alone.object->state(), QpState::error);
}

TYPED_TEST(RdmaErrors, APeerThatIsNotReady) {
  this->p->b.object->reset();
  EXPECT_EQ(this->p->a.run(request(Op::write, this->near, this->far, 8)), Status::retry_exceeded);
  this->again();
  this->p->b.object->fail();
  EXPECT_EQ(this->p->a.run(request(Op::write, this->near, this->far, 8)), Status::retry_exceeded);
}

TYPED_TEST(RdmaErrors, APeerThatTalksToSomebodyElse) {
  auto c = RawQp<TypeParam>(*this->rig.device);
  c.object->initialise(quick());
  c.object->connect(this->p->b.object->address(), quick());
  c.begin();
  EXPECT_EQ(c.run(request(Op::write, this->near, this->far, 8)), Status::retry_exceeded);
  EXPECT_EQ(this->p->a.run(request(Op::write, this->near, this->far, 8)), Status::ok);
}

TYPED_TEST(RdmaErrors, SendsBeforeReadyAreIgnored) {
  RawQp<TypeParam> q(*this->rig.device);
  q.object->initialise(quick());
  this->near.fill(1);
  (void)q.submit(request(Op::write, this->near, this->far, 64));
  EXPECT_FALSE(q.cq.wait(0.02));
  EXPECT_EQ(this->far.data()[1], 0);
  EXPECT_GE(this->rig.counter("invalid_doorbell_values"), 1u);
}

TYPED_TEST(RdmaErrors, FlushInOrder) {
  auto& a = this->p->a;
  auto& b = this->p->b;
  for (u32 i = 0; i < 5; ++i) b.receive(buffer(this->far, 64));
  (void)a.post(request(Op::write, this->near, this->far, 64));
  WorkRequest bad = request(Op::write, this->near, this->far, 64);
  bad.rkey = 0;
  bad.signalled = false;  // an error is told all the same
  const u32 failed = a.post(bad);
  std::vector<u32> marks;
  for (u32 i = 0; i < 6; ++i) {
    WorkRequest wr = request(Op::write, this->near, this->far, 64);
    wr.signalled = i % 2 == 0;
    marks.push_back(a.post(wr));
  }
  a.ring();
  auto c = a.cq.wait();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Status::ok);
  c = a.cq.wait();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Status::remote_access);
  EXPECT_EQ(c->mark, failed);
  this->expect_flush(a.cq, 6, false);
  this->expect_flush(b.recv_cq, 5, true);
  if constexpr (std::is_same_v<TypeParam, Mlx5> || std::is_same_v<TypeParam, Ernic>) {
    // Posted in ERR: flushed as well.
    const u32 mark = a.submit(request(Op::write, this->near, this->far, 64));
    c = a.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, Status::flushed);
    EXPECT_EQ(c->mark, mark);
  }
}

TYPED_TEST(RdmaErrors, FailFlushes) {
  auto& a = this->p->a;
  for (u32 i = 0; i < 3; ++i) a.receive(buffer(this->far, 64));
  a.object->fail();
  EXPECT_EQ(a.object->state(), QpState::error);
  this->expect_flush(a.recv_cq, 3, true);
}

TYPED_TEST(RdmaErrors, AKeyEndsWithItsRegistration) {
  auto gone = std::make_unique<Memory>(*this->rig.device, 4096);
  WorkRequest wr = request(Op::write, this->near, *gone, 64);
  EXPECT_EQ(this->p->a.run(wr), Status::ok);
  gone.reset();
  this->expect(wr, Status::remote_access, QpState::error);
  // Other memory in its place has another key.
  std::vector<std::unique_ptr<Memory>> others;
  for (int i = 0; i < 20; ++i) others.push_back(std::make_unique<Memory>(*this->rig.device, 4096));
  this->expect(wr, Status::remote_access, QpState::error);
}

TYPED_TEST(RdmaErrors, DoorbellsThatRepeatOrRunBackOrAhead) {
  auto& a = this->p->a;
  auto* const word = reinterpret_cast<u64*>(this->far.data());
  WorkRequest wr = request(Op::fetch_add, this->near, this->far, 8);
  wr.operand = 1;
  for (u32 i = 0; i < 20; ++i) EXPECT_EQ(a.run(wr), Status::ok);
  const RingPosition now = a.sq;
  for (int i = 0; i < 3; ++i) {
    a.ring();  // once more, the same value
    ASSERT_TRUE(eventually([&] { return load64_relaxed(a.m.sq_doorbell) == 0; }));
  }
  RingPosition wrong = now;
  wrong.running -= 8 * TypeParam::kUnitParts / 4;
  wrong.slot -= 8 * TypeParam::kUnitParts / 4;
  TypeParam::ring_sq(a.m, wrong, a.word);  // behind the tail
  // Where the index lies in a record, the device may still look for that of the last good doorbell: then it
  // meets the wrong one twice.
  ASSERT_TRUE(eventually([&] { return this->rig.counter("invalid_doorbell_values") >= 1; }));
  ASSERT_TRUE(eventually([&] { return load64_relaxed(a.m.sq_doorbell) == 0; }));
  a.ring();
  EXPECT_EQ(a.run(wr), Status::ok);
  EXPECT_EQ(*word, 21u);
}

TYPED_TEST(RdmaErrors, DoorbellsOfOthersAreIgnored) {
  auto& a = this->p->a;
  QueuePairMemory foreign = a.m;
  foreign.qpn += 5;
  foreign.handle += 5;
  const u32 mark = a.post(request(Op::write, this->near, this->far, 8));
  (void)mark;
  const u64 other = TypeParam::sq_doorbell_word(request(Op::write, this->near, this->far, 8), a.sq, foreign);
  TypeParam::ring_sq(foreign, a.sq, other);
  ASSERT_TRUE(eventually([&] { return this->rig.counter("invalid_doorbell_values") == 1; }));
  EXPECT_FALSE(a.cq.wait(0.01));
  a.ring();
  ASSERT_TRUE(a.cq.wait());
}

TEST(ErnicErrors, ADoorbellNamesTheQueuePairByItsHandle) {
  Rig<Ernic> rig;
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  auto q = rig.loop();
  ASSERT_NE(q.m.handle, q.m.qpn);
  EXPECT_EQ(q.run(request(Op::write, near, far, 8)), Status::ok);
  EXPECT_EQ(rig.counter("invalid_doorbell_values"), 0u);
  // Its number addresses no queue pair, on either side.
  QueuePairMemory numbered = q.m;
  numbered.handle = q.m.qpn;
  (void)q.post(request(Op::write, near, far, 8));
  Ernic::ring_sq(numbered, q.sq, q.word);
  ASSERT_TRUE(eventually([&] { return rig.counter("invalid_doorbell_values") == 1; }));
  EXPECT_FALSE(q.cq.wait(0.01));
  q.ring();
  ASSERT_TRUE(q.cq.wait());
  // Receives are looked for when a message has none.
  Ernic::ring_rq(numbered, q.rq);
  (void)q.submit(request(Op::send, near, far, 8));
  ASSERT_TRUE(eventually([&] { return rig.counter("invalid_doorbell_values") == 2; }));
}

TYPED_TEST(RdmaErrors, AWqeThatIsNone) {
  auto& a = this->p->a;
  (void)a.post(request(Op::write, this->near, this->far, 8));
  // Nonsense from the second word on keeps ionic's colour; the first holds every format's opcode or count.
  const u32 first = 0;
  for (u32 i = 0; i < TypeParam::kUnitParts; ++i) {
    Word16& w = a.m.sq[first + i];
    if (std::is_same_v<TypeParam, Ionic> && i == 0) w.w[2] |= 0x000000ff;
    else if (std::is_same_v<TypeParam, Ernic> && i == 1) w.w[0] = 99;
    else if (!std::is_same_v<TypeParam, Ionic> && i == 0) w.w[0] ^= 0xff0000ff;
  }
  a.ring();
  const auto c = a.cq.wait();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Status::local_qp_op);
  EXPECT_EQ(a.object->state(), QpState::error);
}

TYPED_TEST(RdmaErrors, CqOverflow) {
  auto q = this->rig.loop(quick(), {.sq_requests = 16, .rq_requests = 4});
  WorkRequest wr = request(Op::write, this->near, this->far, 8);
  // Completions are looked at, but their entries never given back.
  u32 seen = 0;
  for (u32 i = 0; i < 2 * q.m.cq_entries && q.object->state() == QpState::rts; ++i) {
    (void)q.submit(wr);
    ASSERT_TRUE(
        eventually([&] { return q.cq.poll(true).has_value() || q.object->state() == QpState::error; }));
    ++seen;
  }
  EXPECT_EQ(q.object->state(), QpState::error);
  EXPECT_LE(seen, q.m.cq_entries + 1);
  EXPECT_GE(seen, q.m.cq_entries - 1);
  EXPECT_EQ(this->rig.counter("cq_overflows"), 1u);
  EXPECT_EQ(this->p->a.run(wr), Status::ok) << "other queue pairs go on";
}

TYPED_TEST(RdmaErrors, SetUpSaysWhatIsWrong) {
  NicDevice& d = *this->rig.device;
  EXPECT_THROW((void)d.create_queue_pair({.sq_requests = 0}), Error);
  EXPECT_THROW((void)d.create_queue_pair({.sq_requests = 1u << 20}), Error);
  EXPECT_THROW((void)d.create_queue_pair({.rq_requests = 0}), Error);
  EXPECT_THROW((void)d.create_queue_pair({.max_inline = d.limits().max_inline + 1}), Error);
  EXPECT_THROW((void)d.create_queue_pair({.queue_memory = Place::gpu}), Error);
  const Region r(Place::pageable, 4096);
  EXPECT_THROW((void)d.register_memory(r, access::remote_write), Error);
  EXPECT_THROW((void)d.register_memory(r, 1u << 12), Error);
  auto q = d.create_queue_pair({});
  EXPECT_THROW(q->connect(q->address(), {}), Error) << "before initialise()";
  ConnectionOptions o;
  o.retry_count = 8;
  EXPECT_THROW(q->initialise(o), Error);
  q->initialise({});
  o = {};
  o.mtu = 1000;
  EXPECT_THROW(q->connect(q->address(), o), Error);
  q->connect(q->address(), {});
  EXPECT_THROW(q->initialise({}), Error);
  EXPECT_THROW(q->connect(q->address(), {}), Error);
  EXPECT_THROW((void)q->memory(Initiator::gpu), Error);
}

TEST(RdmaModelStates, OnlyWhatTheVerbsAllow) {
  using enum QpState;
  EXPECT_TRUE(legal(reset, init) && legal(init, init) && legal(init, rtr) && legal(rtr, rts) &&
              legal(rts, sqd) && legal(sqd, rts) && legal(sqe, rts));
  for (const QpState s : {reset, init, rtr, rts, sqd, sqe, error})
    EXPECT_TRUE(legal(s, reset) && legal(s, error));
  EXPECT_FALSE(legal(reset, rtr) || legal(init, rts) || legal(rtr, init) || legal(rts, rtr) ||
               legal(error, rts) || legal(error, init) || legal(reset, rts) || legal(rtr, sqd));
}

TEST(RdmaModelSpec, NamesTheKey) {
  for (const char* bad :
       {"model:mtu=300", "model:loss=2", "model:threds=2", "model:bandwidth=-1", "model:sq=0"})
    EXPECT_THROW((void)open_model({.spec = bad}), Error) << bad;
  EXPECT_THROW((void)open_model({.spec = "model", .provider = Provider::verbs}), Error);
}

TEST(RdmaModelParts, TimersAndWire) {
  EXPECT_EQ(rnr_timer_ns(0), 655'360'000u);
  EXPECT_EQ(rnr_timer_ns(1), 10'000u);
  EXPECT_EQ(rnr_timer_ns(12), 640'000u);
  EXPECT_EQ(rnr_timer_ns(31), 491'520'000u);
  EXPECT_EQ(wire_bytes(Op::write, 4096, 1) - wire_bytes(Op::send, 4096, 1), 16u);
  EXPECT_GT(wire_bytes(Op::write, 4096, 16), wire_bytes(Op::write, 4096, 1));
}

}  // namespace
}  // namespace doorbell::rdma
