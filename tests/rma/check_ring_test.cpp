// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The ring through which loops leave payloads to checkers: how work is shared out, and a loop with checker
// threads whose payloads only keep books. Every slot is checked whole, before it is made ready, before it is
// used again.

#include <doorbell/error.hpp>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "loop/check_ring.hpp"
#include "measure/check_memory.hpp"
#include "measure/gpu_runner.hpp"

namespace doorbell {
namespace {

const OneLane kLane;

TEST(CheckRing, PiecesAreTheWholePayload) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const u64 bytes = i < 2000 ? static_cast<u64>(i) : random() % (u64{1} << 31);
    CheckRing ring;
    ring.checkers = 1 + static_cast<u32>(random() % 64);
    const u64 each = 512 << random() % 8;
    ring.share(bytes, each, 32);
    const u64 pieces = u64{1} << ring.pieces_shift;
    ASSERT_GE(pieces * ring.piece_bytes, bytes);
    if (ring.pieces_shift > 0) {
      ASSERT_EQ(ring.piece_bytes % pattern::kUnitBytes, 0u);
      ASSERT_EQ(ring.group_shift, 0u);
      ASSERT_LE(ring.piece_bytes, each + pattern::kUnitBytes);
    } else {
      ASSERT_LE(1u << ring.group_shift, 32u);
      ASSERT_TRUE(ring.group_shift == 0 || bytes << ring.group_shift <= each) << bytes;
    }
  }
}

TEST(CheckRing, OneCheckerTakesWholePayloads) {
  CheckRing ring;
  ring.share(1 << 20, 4096, 32);
  EXPECT_EQ(ring.pieces_shift, 0u);
  EXPECT_EQ(ring.group_shift, 0u);
}

TEST(Finding, TheWorstAndOfTheseTheFirstIsTheLargest) {
  const auto packed = [](pattern::Verdict v, u64 offset) { return Finding{v, offset}.packed(); };
  EXPECT_GT(packed(pattern::Verdict::corrupt, 4096), packed(pattern::Verdict::stale, 0));
  EXPECT_GT(packed(pattern::Verdict::stale, 0), packed(pattern::Verdict::stale, 512));
  EXPECT_GT(packed(pattern::Verdict::unverifiable, Finding::kOffsetMask), 0u);
  const Finding f = Finding::of(packed(pattern::Verdict::misplaced, 1536));
  EXPECT_EQ(f.verdict, pattern::Verdict::misplaced);
  EXPECT_EQ(f.offset, 1536u);
}

TEST(CheckerBlocks, EveryCheckerHasAWarpAndAllRunAtOnce) {
  gpu::Info h200;
  h200.multiprocessors = 132;
  for (const u32 asked : {0u, 1u, 7u, 17u, 64u, 128u, 256u})
    for (const u32 queues : {1u, 2u, 8u, 12u, 64u, 66u, 67u, 200u, 500u})
      for (const u64 bytes : {u64{64}, u64{4096}, u64{65536}, u64{1} << 20}) {
        SCOPED_TRACE(testing::Message() << asked << " " << queues << " " << bytes);
        const measure::CheckerBlocks b = measure::checker_blocks(h200, asked, bytes, queues);
        ASSERT_GE(b.warps, 1u);
        ASSERT_EQ(b.threads % 32, 0u);
        ASSERT_LE(b.threads, measure::kCheckThreads);
        ASSERT_GE(b.blocks * b.threads / 32, b.warps);
        ASSERT_LT((b.blocks - 1) * b.threads / 32, b.warps) << "a block without work";
        if (asked != 0) {
          ASSERT_LE(b.warps, asked);
        }
        // Threads of 126 registers fit into half the multiprocessors, or are the fewest that there can be.
        ASSERT_TRUE(queues * b.blocks * b.threads <= 66 * 256 || (b.blocks == 1 && b.threads == 32));
      }
  EXPECT_NO_THROW((void)measure::checker_blocks(h200, 0, 512, 660));
  EXPECT_THROW((void)measure::checker_blocks(h200, 0, 512, 661), Error)
      << "some would wait for others to end";
  EXPECT_EQ(measure::checker_blocks(h200, 128, 1 << 20, 8).warps, 64u);
  EXPECT_EQ(measure::checker_blocks(h200, 0, 512, 1).warps, 16u);
}

/// A check that is finished while the loop does not run is not missing: the look after the next tells.
TEST(CheckRequests, GivesUpOnlyWhatIsMissingAtTwoLooks) {
  measure::CheckMemory memory(4, 1);
  const CheckRing ring = memory.next_phase(512);
  CheckRequests<OneLane> requests;
  requests.begin(kLane, ring);
  const auto nothing = [](u64, const Turn&, const Finding&) {};
  for (u32 i = 0; i < 4; ++i) requests.put(i, {.slot = i, .check = static_cast<u16>(i % 2)});
  requests.add(4);
  requests.publish(kLane, 0);
  EXPECT_FALSE(requests.stuck(true, 10, 100));
  EXPECT_FALSE(requests.stuck(true, 110, 100));
  EXPECT_FALSE(requests.stuck(true, 1000, 100)) << "the loop itself may have stood still";
  store64_release_own(ring.finished(0), 1);
  requests.take(kLane, nothing);
  EXPECT_FALSE(requests.stuck(true, 1001, 100)) << "there was progress";
  EXPECT_FALSE(requests.stuck(true, 1102, 100));
  requests.take(kLane, nothing);
  EXPECT_FALSE(requests.stuck(false, 1103, 100)) << "it does not wait for them";
  EXPECT_FALSE(requests.stuck(true, 1204, 100));
  EXPECT_TRUE(requests.stuck(true, 1205, 100));
  const auto lost = requests.give_up();
  EXPECT_EQ(lost.turns, 3u);
  EXPECT_EQ(lost.checks, 2u);
  EXPECT_FALSE(requests.pending());
}

struct Setting {
  u32 checkers;
  u32 window;
  u64 bytes;
};

/// The books that all checkers keep about slots. The loop is the only one that changes what a slot holds.
struct Books {
  explicit Books(const Setting& s) : slots(s.window) {}
  struct Slot {
    std::atomic<u64> holds{~u64{0}};  ///< the operation that has ended in it
    std::atomic<u64> checked{0};      ///< bytes, since then
    std::atomic<u64> ready{0};        ///< bytes made ready, since then
  };
  std::vector<Slot> slots;
  std::atomic<u64> mistakes{0};
};

/// Operation 7, 17, 27, ... is bad: corrupt in its last byte, stale in its first.
bool is_bad(u64 index) {
  return index % 10 == 7;
}

struct BookKeeping {
  Books* books;
  u64 bytes;

  template <class Found>
  void part(const CheckRing& ring, u64 turn, u64 offset, u64 here, Found found) const {
    const Turn t = *ring.entry(turn);
    Books::Slot& slot = books->slots[t.slot];
    if (t.check != 0) {
      if (slot.holds != t.before) ++books->mistakes;
      slot.checked += here;
      if (is_bad(t.before) && offset == 0) found(turn, pattern::Verdict::stale, u64{0});
      if (is_bad(t.before) && offset + here == bytes) found(turn, pattern::Verdict::corrupt, bytes - 1);
    }
    slot.ready += here;
  }
  template <class Found>
  void turns(const OneLane&, const CheckRing& ring, u64 first, u32 n, u64, Found found) const {
    for (u32 i = 0; i < n; ++i) part(ring, first + i, 0, bytes, found);
  }
  template <class Found>
  void piece(const OneLane&, const CheckRing& ring, u64 turn, u64 offset, u32 most, u64, Found found) const {
    if (offset < bytes) part(ring, turn, offset, std::min<u64>(most, bytes - offset), found);
  }
};

class Handing : public testing::TestWithParam<Setting> {};

TEST_P(Handing, EverySlotIsCheckedBeforeItIsUsedAgain) {
  const Setting& s = GetParam();
  constexpr u64 kOperations = 400;  // each may take the time that other programs have a core for
  measure::CheckMemory memory(s.window, s.checkers);
  Books books(s);
  const BookKeeping payload{&books, s.bytes};
  std::map<u64, Finding> found;
  // A second phase finds the memory as the first has left it.
  for (int phase = 0; phase < 2; ++phase) {
    const CheckRing ring = memory.next_phase(s.bytes);
    for (auto& slot : books.slots) {
      slot.checked = 0;
      slot.ready = 0;
    }
    std::vector<std::thread> threads;
    for (u32 n = 0; n < s.checkers; ++n)
      threads.emplace_back([&, n] {
        Checker<OneLane, BookKeeping> checker(ring, payload, n);
        while (!checker.begun()) std::this_thread::yield();
        while (checker.step(kLane) || !checker.over(kLane)) std::this_thread::yield();
      });
    CheckRequests<OneLane> requests;
    requests.begin(kLane, ring);
    Checker<OneLane, BookKeeping> own(ring, payload, 0);
    const auto publish = [&](u64 newest) {
      requests.publish(kLane, newest);
      if (requests.by_itself()) own.catch_up(kLane, requests.added());
    };
    found.clear();
    const auto note = [&](u64, const Turn& t, const Finding& f) {
      EXPECT_TRUE(found.emplace(t.before, f).second) << "twice: " << t.before;
    };
    for (u32 i = 0; i < s.window; ++i) requests.put(i, {.slot = i});
    requests.add(s.window);
    publish(0);
    std::mt19937_64 random(static_cast<u64>(phase));
    u64 posted = 0;
    u64 done = 0;
    while (done < kOperations || requests.pending()) {
      if (requests.by_itself()) requests.reach(kLane, requests.added(), note);
      else requests.take(kLane, note);
      for (; posted < requests.finished() && posted < kOperations; ++posted) {
        Books::Slot& slot = books.slots[posted % s.window];
        ASSERT_EQ(slot.ready, s.bytes) << "operation " << posted << " is not ready";
        ASSERT_EQ(slot.checked, posted < s.window ? 0 : s.bytes) << "before operation " << posted;
        slot.ready = 0;
        slot.checked = 0;
        slot.holds = posted;
      }
      // Some of those in flight end.
      const u64 most = posted - done;
      const u64 n = most == 0 ? 0 : 1 + random() % most;
      for (u64 i = 0; i < n; ++i)
        requests.put(requests.added() + i,
                     {.before = done + i, .slot = static_cast<u32>((done + i) % s.window), .check = 1});
      requests.add(static_cast<u32>(n));
      done += n;
      if (n > 0) publish(posted - 1);
      else std::this_thread::yield();
    }
    requests.end(kLane);
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(books.mistakes, 0u);
    EXPECT_EQ(found.size(), kOperations / 10);
    for (const auto& [index, f] : found) {
      ASSERT_TRUE(is_bad(index)) << index;
      ASSERT_EQ(f.verdict, pattern::Verdict::corrupt);
      ASSERT_EQ(f.offset, s.bytes - 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Checkers, Handing,
                         testing::Values(Setting{0, 16, 512}, Setting{0, 1, 1 << 20}, Setting{1, 1, 64},
                                         Setting{1, 40, 512}, Setting{2, 64, 64}, Setting{3, 17, 100'000},
                                         Setting{4, 2, 1 << 20}, Setting{3, 1000, 1}),
                         [](const auto& p) {
                           return "checkers" + std::to_string(p.param.checkers) + "_window" +
                                  std::to_string(p.param.window) + "_bytes" + std::to_string(p.param.bytes);
                         });

}  // namespace
}  // namespace doorbell
