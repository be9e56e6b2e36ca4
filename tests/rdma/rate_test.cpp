// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How many small writes a device thread serves. The bound is far below the rate on a quiet machine: it finds
// a loss of an order of magnitude, not of a few per cent.

#include <cstdio>

#include "rig.hpp"

namespace doorbell::rdma {
namespace {

template <class F>
class RdmaRate : public ::testing::Test {};
TYPED_TEST_SUITE(RdmaRate, Formats);

TYPED_TEST(RdmaRate, SmallWrites) {
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "rates are those of an optimized build";
#endif
  Rig<TypeParam> rig;
  auto q = rig.loop(quick(), {.sq_requests = 512, .rq_requests = 1});
  Memory near(*rig.device, 1u << 20), far(*rig.device, 1u << 20);
  constexpr u32 kBatch = 64, kDepth = 256, kRounds = 20000;
  u32 posted = 0, done = 0;
  const u64 begin = wall_ns();
  while (done < kRounds * kBatch) {
    if (posted < kRounds * kBatch && posted - done <= kDepth - kBatch) {
      for (u32 k = 0; k < kBatch; ++k) {
        const u64 at = u64{(posted + k) % 4096} * 64;
        WorkRequest wr = request(Op::write, near, far, 64, at, at);
        wr.signalled = k + 1 == kBatch;
        (void)q.post(wr);
      }
      q.ring();
      posted += kBatch;
    }
    if (const auto c = q.cq.poll()) {
      ASSERT_EQ(c->status, Status::ok);
      done += kBatch;
    } else if (posted - done > kDepth - kBatch) {
      cpu_relax();
    }
  }
  const double rate = static_cast<double>(done) / (static_cast<double>(wall_ns() - begin) * 1e-9);
  std::printf("%s: %.2f M writes/s\n", TypeParam::kName, rate / 1e6);
  EXPECT_GT(rate, 20e3);
}

}  // namespace
}  // namespace doorbell::rdma
