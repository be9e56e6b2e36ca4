// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Copies that several threads share.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

#include "model/config.hpp"
#include "model/copier.hpp"
#include "model/copy_crew.hpp"
#include "sanitized.hpp"

namespace doorbell::model {
namespace {

std::vector<u8> noise(u64 bytes, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<u8> out(bytes);
  std::ranges::generate(out, [&] { return static_cast<u8>(random()); });
  return out;
}

DmaPlace host(u8* at) {
  DmaPlace p = {};
  p.address = at;
  return p;
}

/// Any number of threads, and any length: less than a page a thread, and no multiple of one.
TEST(CopyCrew, CopiesAllBytesAndNoOthers) {
  const std::vector<u8> from = noise(300'000, 1);
  for (const u32 threads : {0u, 1u, 2u, 3u, 5u}) {
    CopyCrew crew(threads);
    EXPECT_EQ(crew.empty(), threads < 2);
    for (const u64 bytes : {u64{0}, u64{1}, u64{4095}, u64{8192}, u64{12'289}, u64{65'537}, u64{299'999}}) {
      std::vector<u8> to(from.size(), 0xee);
      crew.copy(to.data() + 1, from.data(), bytes);
      ASSERT_EQ(std::memcmp(to.data() + 1, from.data(), bytes), 0) << threads << ", " << bytes;
      ASSERT_EQ(to[0], 0xee);
      ASSERT_TRUE(
          std::all_of(to.begin() + 1 + static_cast<i64>(bytes), to.end(), [](u8 b) { return b == 0xee; }));
    }
  }
}

/// Ends the process with 0 if the crew's threads cannot all be had and this is an error that can be caught.
[[noreturn]] void try_a_crew_without_memory() {
  rlimit little = {};
  little.rlim_cur = little.rlim_max = u64{1} << 30;  // each thread's stack takes 8 MiB
  setrlimit(RLIMIT_AS, &little);
  try {
    const CopyCrew crew(4000);
  } catch (const std::system_error&) {
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST(CopyCrew, WithoutMemoryForItsThreadsThereIsNone) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer needs address space of its own";
  EXPECT_EXIT(try_a_crew_without_memory(), testing::ExitedWithCode(0), "");
}

/// What the device does: copy after copy, each complete before its last byte is; another thread polls on that
/// byte.
TEST(CopyCrew, TheLastByteComesLast) {
  constexpr u64 kBytes = kSharedCopy + 4097;
  SoftwareAddressSpace space;
  DmaEngine dma(space, nullptr, 0);
  Copier copier(dma, 2);
  std::vector<u8> from(kBytes), to(kBytes);
  for (u32 round = 1; round <= 20; ++round) {
    const auto value = static_cast<u8>(round);
    std::ranges::fill(from, value);
    std::thread device([&] { EXPECT_TRUE(copier.copy(host(to.data()), host(from.data()), kBytes)); });
    while (__atomic_load_n(&to.back(), __ATOMIC_ACQUIRE) != value) std::this_thread::yield();
    EXPECT_TRUE(std::ranges::all_of(to, [&](u8 b) { return b == value; })) << round;
    device.join();
  }
}

TEST(CopyCrew, PlacesThatOverlapAreMovedByOneThread) {
  constexpr u64 kBytes = 2 * kSharedCopy;
  SoftwareAddressSpace space;
  DmaEngine dma(space, nullptr, 0);
  Copier copier(dma, 3);
  std::vector<u8> data = noise(kBytes + 100, 2);
  const std::vector<u8> before = data;
  EXPECT_TRUE(copier.copy(host(data.data() + 100), host(data.data()), kBytes));
  EXPECT_TRUE(std::equal(data.begin() + 100, data.end(), before.begin()));
}

TEST(CopyCrew, TakesCoresThatNobodyUses) {
  EXPECT_EQ(copy_threads(~0u, 1), 1u);
  EXPECT_GE(copy_threads(0, 1), 2u);
  EXPECT_LE(copy_threads(0, 1), 4u);
  Config c;
  c.copy_threads = 0;
  Use use;
  use.initiator_threads = 1'000'000;
  c.fit(use);
  EXPECT_EQ(c.copy_threads, 1u);
  c.copy_threads = 7;
  c.fit(use);
  EXPECT_EQ(c.copy_threads, 7u) << "what is asked for stays";
}

}  // namespace
}  // namespace doorbell::model
