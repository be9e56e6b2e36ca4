// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software NIC's data path for every queue format: behaviour that any RDMA device has.

#include <atomic>
#include <thread>

#include "rig.hpp"
#include "sanitized.hpp"

namespace doorbell::rdma {
namespace {

template <class F>
class RdmaModel : public ::testing::Test {};
TYPED_TEST_SUITE(RdmaModel, Formats);

constexpr u32 kSizes[] = {0, 1, 15, 16, 17, 28, 64, 255, 4095, 4096, 4097, 65536, 1u << 20};

/// One of each size of each operation from `a` to `b`, which may be the same.
template <class F>
void move_everything(Rig<F>& rig, RawQp<F>& a, RawQp<F>& b) {
  Memory near(*rig.device, 1u << 20), far(*rig.device, 1u << 20);
  for (const u32 n : kSizes) {
    SCOPED_TRACE(n);
    const auto differ = [&](u8 seed) {
      near.fill(seed, n + 1);
      far.fill(static_cast<u8>(seed + 1), n + 1);
    };
    differ(1);
    EXPECT_EQ(a.run(request(Op::write, near, far, n)), Status::ok);
    EXPECT_EQ(std::memcmp(near.data(), far.data(), n), 0);
    if (n < far.region.bytes()) {
      EXPECT_NE(near.data()[n], far.data()[n]) << "one byte too many";
    }
    differ(3);
    EXPECT_EQ(a.run(request(Op::read, near, far, n)), Status::ok);
    EXPECT_EQ(std::memcmp(near.data(), far.data(), n), 0);
    if (n < far.region.bytes()) {
      EXPECT_NE(near.data()[n], far.data()[n]);
    }

    for (const Op op : {Op::send, Op::send_imm, Op::write_imm}) {
      differ(static_cast<u8>(5 + static_cast<u32>(op)));
      const bool writes = op == Op::write_imm;
      b.receive(writes ? ReceiveRequest{} : buffer(far, std::max(n, 1u)));
      WorkRequest wr = request(op, near, far, n);
      wr.imm = 0x01020304 + n;
      EXPECT_EQ(a.run(wr), Status::ok);
      const auto c = b.recv_cq.wait();
      ASSERT_TRUE(c);
      EXPECT_TRUE(c->receive);
      EXPECT_EQ(c->status, Status::ok);
      EXPECT_EQ(c->bytes, n);
      EXPECT_EQ(c->with_imm, has_imm(op));
      EXPECT_EQ(c->imm, has_imm(op) ? wr.imm : 0);
      EXPECT_EQ(std::memcmp(near.data(), far.data(), n), 0);
    }
  }
  EXPECT_FALSE(a.cq.poll());
  EXPECT_FALSE(b.recv_cq.poll());
}

TYPED_TEST(RdmaModel, MovesEverySizeByEveryOperationToItself) {
  Rig<TypeParam> rig;
  auto q = rig.loop();
  move_everything(rig, q, q);
}

TYPED_TEST(RdmaModel, MovesEverySizeByEveryOperationToAPeer) {
  Rig<TypeParam> rig("model:threads=2");
  auto p = rig.pair();
  move_everything(rig, p.a, p.b);
  move_everything(rig, p.b, p.a);
}

TYPED_TEST(RdmaModel, PacketsAreOfThePathsMtu) {
  Rig<TypeParam> rig("model:threads=1,mtu=1024");
  ConnectionOptions o = quick();
  o.mtu = 256;
  auto q = rig.loop(o);
  Memory a(*rig.device, 4096), b(*rig.device, 4096);
  EXPECT_EQ(q.m.mtu, 256u);
  EXPECT_EQ(q.run(request(Op::write, a, b, 1025)), Status::ok);
  EXPECT_EQ(rig.counter("packets"), 5u);
  EXPECT_EQ(q.run(request(Op::write, a, b, 0)), Status::ok);
  EXPECT_EQ(rig.counter("packets"), 6u);
  EXPECT_EQ(rig.counter("bytes"), 1025u);
}

TYPED_TEST(RdmaModel, AtomicsReturnTheOldValue) {
  Rig<TypeParam> rig;
  auto p = rig.pair();
  Memory result(*rig.device, 4096), word(*rig.device, 4096);
  auto* const target = reinterpret_cast<u64*>(word.data() + 8);
  auto* const old = reinterpret_cast<u64*>(result.data() + 16);
  *target = 0x1122334455667788;
  WorkRequest wr = request(Op::fetch_add, result, word, 8, 16, 8);
  wr.operand = ~u64{0};
  EXPECT_EQ(p.a.run(wr), Status::ok);
  EXPECT_EQ(*old, 0x1122334455667788u);
  EXPECT_EQ(*target, 0x1122334455667787u);
  wr.op = Op::compare_swap;
  wr.compare = 5;
  wr.operand = 6;
  EXPECT_EQ(p.a.run(wr), Status::ok);
  EXPECT_EQ(*old, 0x1122334455667787u);
  EXPECT_EQ(*target, 0x1122334455667787u) << "another value than the one compared with";
  wr.compare = *target;
  EXPECT_EQ(p.a.run(wr), Status::ok);
  EXPECT_EQ(*old, wr.compare);
  EXPECT_EQ(*target, 6u);
}

TYPED_TEST(RdmaModel, InlinesAtEveryPositionOfTheRing) {
  if constexpr (TypeParam::kMaxInline == 0) GTEST_SKIP() << "the format has no inline layout";
  Rig<TypeParam> rig;
  const u32 most = std::min(rig.device->limits().max_inline, 200u);
  auto q = rig.loop(quick(), {.sq_requests = 16, .rq_requests = 4, .max_inline = most});
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  // Lengths whose units have no common divisor with the ring's reach every slot as a beginning.
  u32 n = 1;
  for (u32 i = 0; i < 4 * q.m.sq_units && !this->HasFailure(); ++i, n = n % most + 1) {
    near.fill(static_cast<u8>(i));
    std::memset(far.data(), 0, 256);
    WorkRequest wr = request(Op::write, near, far, n);
    wr.inlined = true;
    wr.payload = near.data();
    wr.local = wr.lkey = 0;
    ASSERT_EQ(q.run(wr), Status::ok) << n << " bytes at slot " << q.sq.slot;
    ASSERT_EQ(std::memcmp(near.data(), far.data(), n), 0) << n << " bytes at slot " << q.sq.slot;
    ASSERT_EQ(far.data()[n], 0);
  }
  EXPECT_GE(q.sq.pass, 2u);
}

TYPED_TEST(RdmaModel, OneCompletionStandsForAllBeforeIt) {
  Rig<TypeParam> rig;
  auto q = rig.loop();
  Memory near(*rig.device, 65536), far(*rig.device, 65536);
  near.fill(9);
  for (u32 round = 0; round < 40; ++round) {
    std::memset(far.data(), 0, 65536);
    u32 mark = 0;
    for (u32 i = 0; i < 100; ++i) {
      WorkRequest wr = request(Op::write, near, far, 64, i * 64, i * 64);
      wr.signalled = i == 99;
      mark = q.post(wr);
    }
    q.ring();
    const auto c = q.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, Status::ok);
    EXPECT_EQ(c->mark, mark);
    EXPECT_EQ(std::memcmp(near.data(), far.data(), 6400), 0);
  }
  EXPECT_FALSE(q.cq.poll());
}

TYPED_TEST(RdmaModel, SignalAllOverridesTheRequest) {
  Rig<TypeParam> rig;
  QueuePairShape shape;
  shape.signal_all = true;
  auto q = rig.loop(quick(), shape);
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  WorkRequest wr = request(Op::write, near, far, 8);
  wr.signalled = false;
  EXPECT_EQ(q.run(wr), Status::ok);
}

TYPED_TEST(RdmaModel, IndicesWrap) {
  Rig<TypeParam> rig;
  auto q = rig.loop(quick(), {.sq_requests = 64, .rq_requests = 8});
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  auto* const target = reinterpret_cast<u64*>(far.data());
  // More than 2^16 of whatever unit the indices count.
  constexpr u32 kBatch = 32, kRounds = (1u << (test::kSanitized ? 16 : 17)) / kBatch + 3;
  for (u32 i = 0; i < kRounds; ++i) {
    u32 mark = 0;
    for (u32 k = 0; k < kBatch; ++k) {
      WorkRequest wr = request(Op::fetch_add, near, far, 8);
      wr.operand = 1;
      wr.signalled = k + 1 == kBatch;
      mark = q.post(wr);
    }
    q.ring();
    const auto c = q.cq.wait();
    ASSERT_TRUE(c) << "round " << i;
    ASSERT_EQ(c->status, Status::ok) << "round " << i;
    ASSERT_EQ(c->mark, mark) << "round " << i;
  }
  EXPECT_EQ(*target, u64{kRounds} * kBatch) << "each exactly once";
  EXPECT_EQ(rig.counter("invalid_doorbell_values"), 0u);
}

TYPED_TEST(RdmaModel, ReceivesWrap) {
  Rig<TypeParam> rig;
  constexpr u32 kBatch = test::kSanitized ? 64 : 8, kMessages = 70000 / kBatch * kBatch;  // beyond 2^16
  auto p = rig.pair(quick(), quick(), {.sq_requests = kBatch, .rq_requests = kBatch});
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  for (u32 i = 0; i < kMessages; i += kBatch) {
    u32 mark = 0;
    for (u32 k = 0; k < kBatch; ++k) {
      p.b.receive(buffer(far, 64, 64 * k));
      const u32 id = i + k;
      std::memcpy(near.data() + 64 * k, &id, sizeof id);
      WorkRequest wr = request(Op::send_imm, near, far, 4, 64 * k);
      wr.imm = id;
      wr.signalled = k + 1 == kBatch;
      mark = p.a.post(wr);
    }
    p.a.ring();
    const auto sent = p.a.cq.wait();
    ASSERT_TRUE(sent) << i;
    ASSERT_EQ(sent->status, Status::ok) << i;
    ASSERT_EQ(sent->mark, mark) << i;
    for (u32 k = 0; k < kBatch; ++k) {
      const auto c = p.b.recv_cq.wait();
      ASSERT_TRUE(c) << i;
      ASSERT_EQ(c->imm, i + k);
      const u32 id = i + k;
      ASSERT_EQ(std::memcmp(far.data() + 64 * k, &id, sizeof id), 0);
    }
  }
}

TYPED_TEST(RdmaModel, ManyQueuePairsOnSeveralThreads) {
  Rig<TypeParam> rig("model:threads=3");
  constexpr u32 kPairs = 6;
  Memory word(*rig.device, 4096), result(*rig.device, 4096);
  std::vector<typename Rig<TypeParam>::Pair> pairs;
  for (u32 i = 0; i < kPairs; ++i) pairs.push_back(rig.pair());
  std::vector<std::thread> threads;
  constexpr u32 kEach = test::kSanitized ? 100 : 400;
  for (u32 i = 0; i < kPairs; ++i)
    threads.emplace_back([&, i] {
      auto& q = i % 2 == 0 ? pairs[i].a : pairs[i].b;
      WorkRequest wr = request(Op::fetch_add, result, word, 8, 64 * i);
      wr.operand = 1;
      for (u32 k = 0; k < kEach; ++k)
        if (q.run(wr) != Status::ok) return;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(*reinterpret_cast<u64*>(word.data()), u64{kPairs} * kEach) << "atomics of different threads";
  EXPECT_EQ(rig.counter("fetch_adds"), u64{kPairs} * kEach);
}

TYPED_TEST(RdmaModel, TheLinkTakesItsTime) {
  Rig<TypeParam> rig("model:threads=1,bandwidth=100M,latency=2ms");
  auto p = rig.pair();
  Memory near(*rig.device, 1u << 20), far(*rig.device, 1u << 20);
  const u64 begin = wall_ns();
  EXPECT_EQ(p.a.run(request(Op::write, near, far, 1u << 20)), Status::ok);
  // 2^20 bytes and the headers of 256 packets at 100 MB/s, and the latency.
  EXPECT_GE(wall_ns() - begin, 10'480'000u + 2'000'000u + 256 * 600);
}

TYPED_TEST(RdmaModel, OutstandingReadsAndTheFenceHoldRequestsBack) {
  Rig<TypeParam> rig("model:threads=1,latency=30ms");
  ConnectionOptions o = quick();
  o.max_rd_atomic = 2;
  auto q = rig.loop(o);
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  const u64 begin = wall_ns();
  for (u32 i = 0; i < 4; ++i) (void)q.post(request(Op::read, near, far, 8));
  WorkRequest fenced = request(Op::write, near, far, 8);
  fenced.fence = true;
  (void)q.submit(fenced);
  std::vector<u64> at;
  for (u32 i = 0; i < 5; ++i) {
    const auto c = q.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->status, Status::ok);
    at.push_back(wall_ns() - begin);
  }
  EXPECT_GE(at[1], 30'000'000u);
  EXPECT_GE(at[2], 60'000'000u) << "a third read waits for the first";
  EXPECT_GE(at[4], 90'000'000u) << "a fenced write waits for the reads";
}

TYPED_TEST(RdmaModel, DrainedQueuesTakeWorkButDoNotBeginIt) {
  Rig<TypeParam> rig;
  auto q = rig.loop();
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  EXPECT_EQ(q.run(request(Op::write, near, far, 8)), Status::ok);
  q.model().drain();
  EXPECT_EQ(q.object->state(), QpState::sqd);
  near.fill(3);
  (void)q.submit(request(Op::write, near, far, 8));
  EXPECT_FALSE(q.cq.wait(0.05));
  EXPECT_NE(std::memcmp(near.data(), far.data(), 8), 0);
  q.model().resume();
  const auto c = q.cq.wait();
  ASSERT_TRUE(c);
  EXPECT_EQ(c->status, Status::ok);
  EXPECT_EQ(std::memcmp(near.data(), far.data(), 8), 0);
}

TYPED_TEST(RdmaModel, StartsOverAfterAReset) {
  Rig<TypeParam> rig;
  auto p = rig.pair();
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  for (u32 round = 0; round < 3; ++round) {
    near.fill(static_cast<u8>(round));
    for (u32 i = 0; i < 7; ++i) EXPECT_EQ(p.a.run(request(Op::write, near, far, 64)), Status::ok);
    // Completions not taken and receives not used are gone after the reset.
    p.b.receive(buffer(far, 8));
    (void)p.a.submit(request(Op::write, near, far, 64));
    p.a.object->reset();
    p.b.object->reset();
    EXPECT_EQ(p.a.object->state(), QpState::reset);
    Rig<TypeParam>::join(p);
    EXPECT_FALSE(p.a.cq.poll());
  }
  EXPECT_EQ(p.a.run(request(Op::write, near, far, 64)), Status::ok);
}

TYPED_TEST(RdmaModel, TellsThatItIsThere) {
  Rig<TypeParam> rig;
  EXPECT_EQ(load_acquire(rig.device->alive(Initiator::cpu)), 1u);
  EXPECT_EQ(rig.device->kind(), "model");
}

/// A live display asks for counts while queue pairs are set up.
TYPED_TEST(RdmaModel, CountsMayBeAskedForMeanwhile) {
  Rig<TypeParam> rig;
  RawQp<TypeParam> q = rig.loop();
  std::atomic<bool> over = false;
  std::thread display([&] {
    do EXPECT_EQ(rig.counter("error_completions"), 0u);
    while (!over);
  });
  const u32 qpn = q.object->address().qpn;
  for (u32 i = 0; i < 20; ++i) {
    EXPECT_EQ(q.object->address().qpn, qpn);
    EXPECT_EQ(q.object->memory(Initiator::cpu).sq, q.object->memory(Initiator::cpu).sq);
  }
  over = true;
  display.join();
}

}  // namespace
}  // namespace doorbell::rdma
