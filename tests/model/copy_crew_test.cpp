// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Copies that several threads share.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
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

/// Any number of threads, and any length: less than a share, and no multiple of one.
TEST(CopyCrew, CopiesAllBytesAndNoOthers) {
  const std::vector<u8> from = noise(3'000'000, 1);
  for (const u32 threads : {2u, 3u, 5u}) {
    CopyCrew crew(threads);
    for (const u64 bytes : {u64{1}, u64{2048}, u64{12'289}, u64{65'537}, u64{2'999'999}}) {
      std::vector<u8> to(from.size(), 0xee);
      crew.add(to.data() + 1, from.data(), bytes);
      EXPECT_TRUE(crew.pending());
      crew.settle();
      EXPECT_FALSE(crew.pending());
      ASSERT_EQ(std::memcmp(to.data() + 1, from.data(), bytes), 0) << threads << ", " << bytes;
      ASSERT_EQ(to[0], 0xee);
      ASSERT_TRUE(
          std::all_of(to.begin() + 1 + static_cast<i64>(bytes), to.end(), [](u8 b) { return b == 0xee; }));
    }
  }
}

/// Begins `copies` copies of `bytes` bytes each, side by side, and then waits for all.
void copy_together(u32 threads, u64 bytes, u64 copies) {
  const std::vector<u8> from = noise(bytes * copies, bytes);
  std::vector<u8> to(from.size());
  CopyCrew crew(threads);
  for (u64 i = 0; i < copies; ++i) crew.add(to.data() + i * bytes, from.data() + i * bytes, bytes);
  EXPECT_EQ(crew.bytes(), bytes * copies);
  crew.settle();
  EXPECT_EQ(to, from);
  EXPECT_EQ(crew.bytes(), 0u);
}

/// More shares than there are.
TEST(CopyCrew, CopiesAreUnderWayTogether) {
  copy_together(3, 3000, 2000);
}

/// Copies of several parts; the shares end in the middle of one.
TEST(CopyCrew, LargeCopiesAreUnderWayTogether) {
  copy_together(3, 100'001, 60);
}

/// A share ends when it has many parts, however short.
TEST(CopyCrew, ShortCopiesAreUnderWayTogether) {
  copy_together(2, 7, 3000);
}

TEST(CopyCrew, OneThreadNeedsNoHelp) {
  EXPECT_TRUE(CopyCrew(0).empty());
  EXPECT_TRUE(CopyCrew(1).empty());
  EXPECT_FALSE(CopyCrew(2).empty());
}

/// Ends the process with 0 if the crew's threads cannot all be had and this is an error that can be caught.
[[noreturn]] void try_a_crew_without_memory() {
  rlimit little = {};
  little.rlim_cur = little.rlim_max = u64{1} << 30;  // each thread's stack takes 8 MiB
  setrlimit(RLIMIT_AS, &little);
  try {
    const CopyCrew crew(4000);
  } catch (const Error&) {
    std::_Exit(0);
  }
  std::_Exit(1);
}

TEST(CopyCrew, WithoutMemoryForItsThreadsThereIsNone) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer needs address space of its own";
  EXPECT_EXIT(try_a_crew_without_memory(), testing::ExitedWithCode(0), "");
}

/// A copier of `threads` threads, without GPU memory.
struct Alone {
  explicit Alone(u32 threads) : copier(dma, threads) {}
  SoftwareAddressSpace space;
  DmaEngine dma{space, nullptr, 0};
  Copier copier;
};

/// The device's work: copies, each complete before its last byte is, and each last byte after those of the
/// copies before it. Another thread polls on the last byte of the second one.
TEST(CopyCrew, TheLastByteComesLast) {
  constexpr u64 kLarge = CopyCrew::kWorthWaking + 4097;
  constexpr u64 kSmall = CopyCrew::kWorthSharing;
  Alone a(2);
  std::vector<u8> from(kLarge + kSmall), to(kLarge + kSmall);
  for (u32 round = 1; round <= 20; ++round) {
    const auto value = static_cast<u8>(round);
    std::ranges::fill(from, value);
    std::thread device([&] {
      EXPECT_TRUE(a.copier.copy(host(to.data()), host(from.data()), kLarge));
      EXPECT_TRUE(a.copier.copy(host(to.data() + kLarge), host(from.data() + kLarge), kSmall));
      EXPECT_TRUE(a.copier.settle());
    });
    while (__atomic_load_n(&to.back(), __ATOMIC_ACQUIRE) != value) std::this_thread::yield();
    EXPECT_TRUE(std::ranges::all_of(to, [&](u8 b) { return b == value; })) << round;
    device.join();
  }
}

/// A flag that is written behind data.
TEST(CopyCrew, ASmallCopyDoesNotOvertakeLargeOnes) {
  Alone a(3);
  const std::vector<u8> from = noise(300'000, 5);
  std::vector<u8> to(from.size());
  const u64 data = from.size() - 8;
  EXPECT_TRUE(a.copier.copy(host(to.data()), host(const_cast<u8*>(from.data())), data));
  EXPECT_TRUE(a.copier.copy(host(to.data() + data), host(const_cast<u8*>(from.data()) + data), 8));
  EXPECT_EQ(to, from) << "the small one is complete at once";
  EXPECT_FALSE(a.copier.pending());
}

TEST(CopyCrew, PlacesThatOverlapAreMovedByOneThread) {
  constexpr u64 kBytes = 100'000;
  Alone a(3);
  std::vector<u8> data = noise(kBytes + 100, 2);
  const std::vector<u8> before = data;
  EXPECT_TRUE(a.copier.copy(host(data.data() + 100), host(data.data()), kBytes));
  EXPECT_TRUE(a.copier.settle());
  EXPECT_TRUE(std::equal(data.begin() + 100, data.end(), before.begin()));
}

/// Copies whose places meet, of all sizes: what results is what copies one after the other leave.
TEST(CopyCrew, TheResultIsThatOfOneCopyAfterTheOther) {
  constexpr u64 kMemory = 400'000;
  Alone a(4);
  std::vector<u8> memory = noise(kMemory, 7);
  std::vector<u8> expected = memory;
  std::mt19937_64 random(11);
  for (u32 i = 0; i < 3000; ++i) {
    const u64 most = u64{1} << (random() % 17);
    const u64 bytes = 1 + random() % most;
    const u64 to = random() % (kMemory - bytes + 1), from = random() % (kMemory - bytes + 1);
    ASSERT_TRUE(a.copier.copy(host(memory.data() + to), host(memory.data() + from), bytes));
    std::memmove(expected.data() + to, expected.data() + from, bytes);
    if (random() % 16 == 0) {
      ASSERT_TRUE(a.copier.settle());
      ASSERT_EQ(memory, expected) << i;
    }
  }
  ASSERT_TRUE(a.copier.settle());
  EXPECT_EQ(memory, expected);
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
