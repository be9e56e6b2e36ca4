// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How many small puts a device thread serves, and how large puts compare with memcpy. The bounds are far
// below the rates on a quiet machine: they find a loss of an order of magnitude, not of a few per cent.

#include <cstdio>

#include "rig.hpp"

namespace doorbell::cxi {
namespace {

constexpr bool kMeaningful =
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    false;
#else
    true;
#endif

TEST(CxiRate, SmallPuts) {
  if (!kMeaningful) GTEST_SKIP() << "rates are those of an optimized build";
  Rig rig;
  constexpr u32 kBatch = 64, kPuts = 3'000'000;
  NomatchDma put = rig.put(64);
  const u64 local = put.local_addr;
  u32 posted = 0;
  const u64 begin = wall_ns();
  while (posted < kPuts) {
    if (rig.tx.queue->room(lane, kBatch) < kBatch) {
      cpu_relax();
      continue;
    }
    rig.tx.queue->post_puts(lane, kBatch, [&](u32 i) {
      const u64 at = u64{(posted + i) % 4096} * 64;
      put.local_addr = local + at;
      put.remote_offset = at;
      return put;
    });
    rig.tx.queue->ring(lane);
    posted += kBatch;
  }
  ASSERT_TRUE(rig.ct.reaches(posted));
  const double rate = static_cast<double>(posted) / (static_cast<double>(wall_ns() - begin) * 1e-9);
  std::printf("%.2f M puts/s\n", rate / 1e6);
  EXPECT_TRUE(rig.arrived(4096 * 64));
  EXPECT_GT(rate, 50e3);
}

TEST(CxiRate, LargePutsBesideMemcpy) {
  if (!kMeaningful) GTEST_SKIP() << "rates are those of an optimized build";
  constexpr u32 kBytes = 512 << 10, kPuts = 2000;
  Rig rig;
  const auto seconds = [](u64 begin) { return static_cast<double>(wall_ns() - begin) * 1e-9; };
  double best_copy = 1e9, best_put = 1e9;
  u64 done = 0;
  for (int round = 0; round < 3; ++round) {
    u64 begin = wall_ns();
    for (u32 i = 0; i < kPuts; ++i) {
      std::memcpy(rig.far.data(), rig.near.data(), kBytes);
      asm volatile("" ::: "memory");
    }
    best_copy = std::min(best_copy, seconds(begin));
    begin = wall_ns();
    for (u32 i = 0; i < kPuts; ++i) rig.tx.post(rig.put(kBytes));
    rig.tx.ring();
    done += kPuts;
    ASSERT_TRUE(rig.ct.reaches(done));
    best_put = std::min(best_put, seconds(begin));
  }
  const double bytes = double{kBytes} * kPuts;
  std::printf("puts %.2f GB/s, memcpy %.2f GB/s, ratio %.3f\n", bytes / best_put / 1e9,
              bytes / best_copy / 1e9, best_copy / best_put);
  EXPECT_GT(best_copy / best_put, 0.3);
}

}  // namespace
}  // namespace doorbell::cxi
