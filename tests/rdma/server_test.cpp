// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The code that is a NIC in a kernel, with warps of several lanes and with warps that move data for it:
// whatever their number, memory and completions are those of one request after the other. What a NIC must do
// is tested by rdma_model_test, for which one lane serves.

#include <random>
#include <thread>

#include "emulated_warp.hpp"
#include "model/emulated_block.hpp"
#include "rdma/model/describe.hpp"
#include "rig.hpp"
#include "sanitized.hpp"

namespace doorbell::rdma {
namespace {

template <class F, u32 kLanes, u32 kHelpers>
using Block = test::EmulatedBlock<ServedEngine<F, EmulatedWarp<kLanes>, HostClock>, EmulatedWarp<kLanes>,
                                  ServerJob, kHelpers>;

template <class F, u32 kLanes, u32 kHelpers>
const FormatShape& block_shape() {
  static const FormatShape shape = [] {
    FormatShape s = describe<F>();
    s.serve = [](const ServerJob& job, u32 server) -> std::function<bool()> {
      return [b = std::make_shared<Block<F, kLanes, kHelpers>>(job, server)] { return b->poll(); };
    };
    return s;
  }();
  return shape;
}

template <class F>
std::unique_ptr<NicDevice> open_block(const FormatShape& shape, u32 threads = 1) {
  ModelConfig c;
  c.engine = ModelConfig::Engine::kernel_on_cpu;
  c.threads = threads;
  return std::make_unique<ModelNic>(c, provider_of<F>(), shape, "model", nullptr);
}

template <class F>
class RdmaServer : public ::testing::Test {
 protected:
  /// Every shape of a block.
  template <class Fn>
  static void each(Fn&& fn) {
    const std::pair<const char*, const FormatShape*> shapes[] = {
        {"8 lanes, 1 helper", &block_shape<F, 8, 1>()}, {"32 lanes, 2 helpers", &block_shape<F, 32, 2>()}};
    for (const auto& [name, shape] : shapes) {
      SCOPED_TRACE(name);
      Rig<F> rig;
      rig.device = open_block<F>(*shape);
      fn(rig);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
};
TYPED_TEST_SUITE(RdmaServer, Formats);

constexpr u32 kBytes = 65536;

/// Requests of every kind, at places that overlap, posted in batches: memory is what they make of it one
/// after the other, and they complete in that order.
TYPED_TEST(RdmaServer, WorksAsOneRequestAfterTheOther) {
  TestFixture::each([](Rig<TypeParam>& rig) {
    constexpr u32 kRequests = test::kSanitized ? 200 : 600;
    const u32 inlined = std::min(rig.device->limits().max_inline, 100u);
    auto p = rig.pair(quick(), quick(), {.sq_requests = 64, .rq_requests = 64, .max_inline = inlined});
    Memory near(*rig.device, kBytes), far(*rig.device, kBytes);
    near.fill(1);
    far.fill(77);
    std::vector<u8> mine(near.data(), near.data() + kBytes), theirs(far.data(), far.data() + kBytes);
    std::mt19937 random(5);
    const auto below = [&](u32 n) { return static_cast<u32>(random() % n); };
    constexpr Op kOps[] = {Op::write, Op::write,     Op::write,     Op::read,
                           Op::read,  Op::fetch_add, Op::write_imm, Op::send};
    std::vector<u32> marks;
    u32 received = 0, receives = 0;
    std::vector<u8> payload(inlined);
    for (u32 posted = 0; posted < kRequests;) {
      const u32 batch = std::min(1 + below(48), kRequests - posted);
      const bool plain = below(3) != 0;  // some batches have only what several lanes can do together
      marks.clear();
      receives = 0;
      for (u32 i = 0; i < batch; ++i, ++posted) {
        const Op op = plain ? kOps[below(5)] : kOps[below(8)];
        const u32 n = is_atomic(op) ? 8 : below(20) == 0 ? below(9000) : below(300);
        // Few places, so that requests meet; of every alignment.
        const u32 a = is_atomic(op) ? below(64) * 8 : below(2) == 0 ? below(32) * 512 : below(kBytes - n);
        const u32 b = is_atomic(op) ? below(64) * 8 : below(2) == 0 ? below(32) * 512 : below(kBytes - n);
        WorkRequest wr = request(op, near, far, n, a, b);
        wr.operand = 3;
        if (takes_receive(op)) {
          p.b.receive(op == Op::send ? buffer(far, std::max(n, 1u), b) : ReceiveRequest{});
          ++receives;
        }
        const bool in_the_wqe = op == Op::write && n > 0 && n <= inlined && below(2) == 0;
        if (in_the_wqe) {
          for (u32 k = 0; k < n; ++k) payload[k] = static_cast<u8>(random());
          wr.inlined = true;
          wr.payload = payload.data();
        }
        marks.push_back(p.a.post(wr));
        switch (op) {
          case Op::read:
            std::memcpy(mine.data() + a, theirs.data() + b, n);
            break;
          case Op::fetch_add: {
            u64 was = 0;
            std::memcpy(&was, theirs.data() + b, 8);
            std::memcpy(mine.data() + a, &was, 8);
            was += 3;
            std::memcpy(theirs.data() + b, &was, 8);
            break;
          }
          default:
            std::memcpy(theirs.data() + b, in_the_wqe ? payload.data() : mine.data() + a, n);
        }
      }
      p.a.ring();
      for (const u32 mark : marks) {
        const auto c = p.a.cq.wait();
        ASSERT_TRUE(c) << posted;
        ASSERT_EQ(c->status, Status::ok);
        ASSERT_EQ(c->mark, mark);
      }
      for (; receives > 0; --receives, ++received) {
        const auto c = p.b.recv_cq.wait();
        ASSERT_TRUE(c);
        ASSERT_EQ(c->status, Status::ok);
      }
      ASSERT_EQ(std::memcmp(near.data(), mine.data(), kBytes), 0) << "after " << posted;
      ASSERT_EQ(std::memcmp(far.data(), theirs.data(), kBytes), 0) << "after " << posted;
    }
    EXPECT_FALSE(p.a.cq.poll());
    EXPECT_FALSE(p.b.recv_cq.poll());
    EXPECT_EQ(rig.counter("invalid_doorbell_values"), 0u);
    EXPECT_EQ(rig.counter("writes") + rig.counter("reads") + rig.counter("fetch_adds") +
                  rig.counter("writes_with_immediate") + rig.counter("sends"),
              kRequests);
    EXPECT_EQ(rig.counter("writes_with_immediate") + rig.counter("sends"), received);
  });
}

/// A burst ends before the first request that is wrong; that one and all behind it fail as ever.
TYPED_TEST(RdmaServer, WhatIsWrongInABurstEndsIt) {
  TestFixture::each([](Rig<TypeParam>& rig) {
    auto p = rig.pair();
    Memory near(*rig.device, 4096), far(*rig.device, 4096), none(*rig.device, 4096, access::local_write);
    far.fill(9);
    near.fill(3);
    std::vector<u8> before(far.data(), far.data() + 4096);
    for (u32 i = 0; i < 12; ++i)
      (void)p.a.post(request(Op::write, near, i == 7 ? none : far, 64, i * 64, i * 64));
    p.a.ring();
    for (u32 i = 0; i < 7; ++i) {
      const auto c = p.a.cq.wait();
      ASSERT_TRUE(c);
      EXPECT_EQ(c->status, Status::ok) << i;
    }
    const auto bad = p.a.cq.wait();
    ASSERT_TRUE(bad);
    EXPECT_EQ(bad->status, Status::remote_access);
    const auto flushed = p.a.cq.wait();
    ASSERT_TRUE(flushed);
    EXPECT_EQ(flushed->status, Status::flushed);
    EXPECT_EQ(std::memcmp(far.data(), near.data(), 7 * 64), 0);
    EXPECT_EQ(std::memcmp(far.data() + 8 * 64, before.data() + 8 * 64, 4096 - 8 * 64), 0);
    EXPECT_EQ(p.a.object->state(), QpState::error);
  });
}

/// A completion queue that fills in the middle of a burst, and is given back.
TYPED_TEST(RdmaServer, ABurstWaitsForRoom) {
  TestFixture::each([](Rig<TypeParam>& rig) {
    auto q = rig.loop(quick(), {.sq_requests = 32, .rq_requests = 4});
    Memory near(*rig.device, 4096), far(*rig.device, 4096);
    u32 done = 0;
    for (u32 round = 0; round < 40; ++round) {
      for (u32 i = 0; i < 30; ++i) (void)q.post(request(Op::write, near, far, 8, i * 8, i * 8));
      q.ring();
      for (u32 i = 0; i < 30; ++i, ++done) {
        // Only the last of a round is given back, and all before it with that.
        ASSERT_TRUE(eventually([&] {
          const auto c = q.cq.poll(i + 1 < 30);
          return c && c->status == Status::ok;
        })) << done;
      }
    }
    EXPECT_EQ(rig.counter("cq_overflows"), 0u);
    EXPECT_GT(rig.counter("in_bursts"), 1000u) << "of 1200";
  });
}

}  // namespace
}  // namespace doorbell::rdma
