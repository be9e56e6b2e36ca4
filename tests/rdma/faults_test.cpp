// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every fault that the software NIC injects is carried out and counted, and nothing else goes wrong.

#include "rig.hpp"

namespace doorbell::rdma {
namespace {

using model::Fault;

template <class F>
class RdmaFaults : public ::testing::Test {};
TYPED_TEST_SUITE(RdmaFaults, Formats);

constexpr u32 kBytes = 512;

/// A NIC with one fault, and memory of two kilobytes at each end.
template <class F>
struct Faulty {
  explicit Faulty(Fault f, double p = 1, const std::string& spec = "model:threads=1")
      : rig(spec, only(f, p)), q(rig.loop()) {
    near.fill(1);
    std::memset(far.data(), 0, 4096);
  }
  Rig<F> rig;
  RawQp<F> q;
  Memory near{*rig.device, 4096}, far{*rig.device, 4096};
};

/// Bytes in which two buffers differ.
u32 differences(const u8* a, const u8* b, u32 n) {
  u32 count = 0;
  for (u32 i = 0; i < n; ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

TYPED_TEST(RdmaFaults, DropKeepsTheCompletion) {
  Faulty<TypeParam> f(Fault::drop);
  (void)f.q.submit(request(Op::write, f.near, f.far, kBytes));
  ASSERT_TRUE(eventually([&] { return f.rig.injected("drop") == 1; }));
  EXPECT_FALSE(f.q.cq.wait(0.02));
  EXPECT_EQ(differences(f.near.data(), f.far.data(), kBytes), 0u) << "the request itself was done";
  WorkRequest silent = request(Op::write, f.near, f.far, kBytes);
  silent.signalled = false;
  (void)f.q.submit(silent);
  ASSERT_TRUE(eventually([&] { return f.rig.counter("writes") == 2; }));
  EXPECT_EQ(f.rig.injected("drop"), 1u) << "there was no completion to drop";
}

TYPED_TEST(RdmaFaults, DelayIsLateButInOrder) {
  Faulty<TypeParam> f(Fault::delay, 0.4, "model:threads=1,delay=20ms");
  std::vector<u32> marks;
  for (u32 i = 0; i < 12; ++i) marks.push_back(f.q.post(request(Op::write, f.near, f.far, kBytes)));
  const u64 begin = wall_ns();
  f.q.ring();
  for (u32 i = 0; i < 12; ++i) {
    const auto c = f.q.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->mark, marks[i]);
  }
  const u64 n = f.rig.injected("delay");
  EXPECT_GT(n, 0u);
  EXPECT_LT(n, 12u);
  EXPECT_GE(wall_ns() - begin, 20'000'000u);
}

TYPED_TEST(RdmaFaults, ErrorEndsTheQueuePair) {
  Faulty<TypeParam> f(Fault::error);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes)), Status::remote_operation);
  EXPECT_EQ(f.q.object->state(), QpState::error);
  EXPECT_EQ(f.rig.injected("error"), 1u);
}

TYPED_TEST(RdmaFaults, CorruptChangesOneByte) {
  Faulty<TypeParam> f(Fault::corrupt);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data(), kBytes), 1u);
  f.q.receive(buffer(f.far, kBytes, 1024));
  EXPECT_EQ(f.q.run(request(Op::send, f.near, f.far, kBytes)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data() + 1024, kBytes), 1u);
  f.far.fill(99);
  EXPECT_EQ(f.q.run(request(Op::read, f.near, f.far, kBytes)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data(), kBytes), 1u);
  EXPECT_EQ(f.rig.injected("corrupt"), 3u);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, 0)), Status::ok);
  WorkRequest add = request(Op::fetch_add, f.near, f.far, 8);
  EXPECT_EQ(f.q.run(add), Status::ok);
  EXPECT_EQ(f.rig.injected("corrupt"), 3u) << "nothing to change";
}

TYPED_TEST(RdmaFaults, MisplaceGoesElsewhereInTheSameMemory) {
  Faulty<TypeParam> f(Fault::misplace);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes, 0, 1024)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data() + 1024 + kBytes, kBytes), 0u);
  EXPECT_EQ(f.far.data()[1025], 0) << "where it should have been";
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes, 0, 4096 - kBytes)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data() + 4096 - 2 * kBytes, kBytes), 0u) << "no room behind";
  EXPECT_EQ(f.rig.injected("misplace"), 2u);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, 4096)), Status::ok);
  EXPECT_EQ(differences(f.near.data(), f.far.data(), 4096), 0u);
  EXPECT_EQ(f.rig.injected("misplace"), 2u) << "there is no other place";
}

TYPED_TEST(RdmaFaults, StaleIsAcknowledgedAndNotDone) {
  Faulty<TypeParam> f(Fault::stale);
  EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes)), Status::ok);
  f.q.receive(buffer(f.far, kBytes));
  EXPECT_EQ(f.q.run(request(Op::send, f.near, f.far, kBytes)), Status::ok);
  EXPECT_TRUE(f.q.recv_cq.wait());
  for (u32 i = 0; i < 4096; ++i) ASSERT_EQ(f.far.data()[i], 0);
  EXPECT_EQ(f.rig.injected("stale"), 2u);
}

TYPED_TEST(RdmaFaults, DuplicateCompletesTwice) {
  Faulty<TypeParam> f(Fault::duplicate);
  const u32 mark = f.q.submit(request(Op::write, f.near, f.far, kBytes));
  for (int i = 0; i < 2; ++i) {
    const auto c = f.q.cq.wait();
    ASSERT_TRUE(c);
    EXPECT_EQ(c->mark, mark);
  }
  EXPECT_FALSE(f.q.cq.wait(0.01));
  EXPECT_EQ(f.rig.injected("duplicate"), 1u);
}

TYPED_TEST(RdmaFaults, ReorderHoldsOneQueuePairBack) {
  Faulty<TypeParam> f(Fault::reorder, 0.5);
  for (u32 i = 0; i < 40; ++i) {
    std::memset(f.far.data(), 0, kBytes);
    ASSERT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes)), Status::ok);
    ASSERT_EQ(differences(f.near.data(), f.far.data(), kBytes), 0u);
  }
  EXPECT_GT(f.rig.injected("reorder"), 5u);
  EXPECT_LT(f.rig.injected("reorder"), 35u);
}

TYPED_TEST(RdmaFaults, RemovalIsTheEnd) {
  Faulty<TypeParam> f(Fault::removal);
  (void)f.q.submit(request(Op::write, f.near, f.far, kBytes));
  EXPECT_TRUE(eventually([&] { return load_acquire(f.rig.device->alive(Initiator::cpu)) == 0; }));
  EXPECT_FALSE(f.q.cq.wait(0.02));
  EXPECT_EQ(f.far.data()[1], 0);
  EXPECT_EQ(f.rig.injected("removal"), 1u);
}

TYPED_TEST(RdmaFaults, TheSameSeedChoosesTheSameRequests) {
  std::vector<std::vector<u32>> chosen;
  for (int run = 0; run < 2; ++run) {
    Faulty<TypeParam> f(Fault::stale, 0.3);
    std::vector<u32> hits;
    for (u32 i = 0; i < 30; ++i) {
      std::memset(f.far.data(), 0, kBytes);
      EXPECT_EQ(f.q.run(request(Op::write, f.near, f.far, kBytes)), Status::ok);
      if (f.far.data()[1] == 0) hits.push_back(i);
    }
    EXPECT_EQ(hits.size(), f.rig.injected("stale"));
    chosen.push_back(hits);
  }
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_FALSE(chosen[0].empty());
}

TYPED_TEST(RdmaFaults, RefusesReceiversAsOftenAsTold) {
  Rig<TypeParam> rig("model:threads=1,rnr=2");
  auto q = rig.loop();
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  for (u32 i = 0; i < 3; ++i) {
    q.receive(buffer(far, 64));
    EXPECT_EQ(q.run(request(Op::send, near, far, 64)), Status::ok);
  }
  EXPECT_EQ(rig.counter("rnr_naks"), 6u);
  ConnectionOptions one_retry = quick();
  one_retry.rnr_retry = 1;
  auto other = rig.loop(one_retry);
  other.receive(buffer(far, 64));
  EXPECT_EQ(other.run(request(Op::send, near, far, 64)), Status::rnr_retry_exceeded);
}

TYPED_TEST(RdmaFaults, LossIsRepairedAndNothingIsDoneTwice) {
  Rig<TypeParam> rig("model:threads=1,loss=0.2,mtu=256");
  ConnectionOptions o = quick();
  o.timeout = 3;
  o.retry_count = 7;
  auto q = rig.loop(o);
  Memory near(*rig.device, 8192), far(*rig.device, 8192);
  auto* const word = reinterpret_cast<u64*>(far.data());
  WorkRequest add = request(Op::fetch_add, near, far, 8);
  add.operand = 1;
  for (u32 i = 0; i < 200; ++i) ASSERT_EQ(q.run(add), Status::ok) << i;
  EXPECT_EQ(*word, 200u);
  for (u32 i = 0; i < 50; ++i) {
    near.fill(static_cast<u8>(i));
    q.receive(buffer(far, 8192));
    ASSERT_EQ(q.run(request(Op::send, near, far, 4000)), Status::ok) << i;
    ASSERT_TRUE(q.recv_cq.wait());
    ASSERT_FALSE(q.recv_cq.poll()) << "one receive a message";
    ASSERT_EQ(differences(near.data(), far.data(), 4000), 0u);
  }
  EXPECT_GT(rig.counter("retransmissions"), 50u);
}

TYPED_TEST(RdmaFaults, TotalLossExceedsTheRetries) {
  Rig<TypeParam> rig("model:threads=1,loss=1");
  auto q = rig.loop();
  Memory near(*rig.device, 4096), far(*rig.device, 4096);
  near.fill(1);
  EXPECT_EQ(q.run(request(Op::write, near, far, 64)), Status::retry_exceeded);
  EXPECT_EQ(far.data()[1], 0);
  EXPECT_EQ(rig.counter("retransmissions"), 3u);
}

}  // namespace
}  // namespace doorbell::rdma
