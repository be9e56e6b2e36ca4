// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Tests of OpPayload alone: what atomics find, and the slot to which a message goes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <type_traits>
#include <vector>

#include "emulated_warp.hpp"
#include "rma/op_payload.hpp"

namespace doorbell::rma {
namespace {

using pattern::Verdict;

constexpr OneLane kLane;
constexpr u32 kBytes = 64;
constexpr u32 kStride = 64;

struct Buffers {
  alignas(64) u8 local[16 * kStride] = {};
  alignas(64) u8 remote[16 * kStride] = {};
  OpPhase phase;
  OpQueue queue;
  Buffers() {
    phase.verify = true;
    phase.bytes = kBytes;
    phase.window = 16;
    phase.seed = 9;
    queue.local = local;
    queue.remote = remote;
    queue.stride = kStride;
    queue.number = 3;
  }
};

constexpr auto kOwnSlot = [](u32 i) { return i; };
using Verdicts = std::map<u32, Verdict>;

class Atomics : public testing::TestWithParam<Op> {
 protected:
  static constexpr u64 kFirst = 2;
  static constexpr u32 kCount = 7;
  Atomics() {
    b_.phase.op = GetParam();
    b_.phase.bytes = kAtomicBytes;
  }
  /// Stores `value` where the old values come back.
  void answer(u32 i, u64 value) { store_word(b_.local + i * kStride, value); }
  template <class Warp>
  void check(const Warp& warp, u64 wanted, Verdicts& out) {
    const OpPayload<Warp> p(b_.phase, b_.queue);
    p.check(warp, kFirst, kCount, wanted, kFirst + kCount - 1, kOwnSlot, [&](u32 i, Verdict v, u64 address) {
      if (warp.lane() != 0) return;
      EXPECT_EQ(address, u64{3} << 40);
      EXPECT_TRUE(out.emplace(i, v).second) << "told twice";
    });
  }
  Buffers b_;
};

TEST_P(Atomics, WhatNeverCameIsToldFromWhatIsWrong) {
  const OpPayload<OneLane> p(b_.phase, b_.queue);
  p.prepare(kLane, kFirst, kCount, kOwnSlot);
  const auto old = [&](u32 i) { return p.walk().before(GetParam(), kFirst + i); };
  for (const u32 i : {0u, 3u}) answer(i, old(i));
  answer(2, old(2) ^ 1);
  answer(5, old(5) ^ u64{1} << 63);
  // The others keep what prepare() left there.
  const Verdicts all = {{1, Verdict::missing},
                        {2, Verdict::corrupt},
                        {4, Verdict::missing},
                        {5, Verdict::corrupt},
                        {6, Verdict::missing}};
  Verdicts found;
  check(kLane, 0x7f, found);
  EXPECT_EQ(found, all);
  Verdicts by_warp;
  run_warp<2>([&](const auto& warp) { check(warp, 0x7f, by_warp); });
  EXPECT_EQ(by_warp, all) << "in more rounds than one";
  Verdicts some;
  check(kLane, 0x29, some);
  EXPECT_EQ(some, (Verdicts{{5, Verdict::corrupt}})) << "only what is asked for";
}

TEST_P(Atomics, TheWordEndsAsManyStepsOnAsWereDone) {
  const OpPayload<OneLane> p(b_.phase, b_.queue);
  p.start(kLane);
  u64 word = load_word(b_.remote);
  for (u64 i = 0; i < 12; ++i) {
    EXPECT_TRUE(p.ended_right(i)) << i;
    EXPECT_EQ(word, p.walk().before(GetParam(), i)) << i;
    const bool swap = GetParam() == Op::compare_swap;
    if (!swap) word += p.walk().operand(GetParam(), i);
    else if (word == p.walk().compare(i)) word = p.walk().operand(GetParam(), i);
    store_word(b_.remote, word);
    EXPECT_EQ(p.ended_right(i), swap && i % 4 == 3) << i;
  }
  store_word(b_.remote, word + 1);
  EXPECT_FALSE(p.ended_right(12));
}

INSTANTIATE_TEST_SUITE_P(OpPayload, Atomics, testing::Values(Op::fetch_add, Op::compare_swap));

/// Slots of `memory` that do not hold `filler` alone.
std::vector<u32> touched(const u8* memory, u32 slots, u8 filler) {
  std::vector<u32> out;
  for (u32 s = 0; s < slots; ++s)
    if (std::any_of(memory + s * kStride, memory + (s + 1) * kStride, [&](u8 b) { return b != filler; }))
      out.push_back(s);
  return out;
}

/// Messages that land in `landing` slots, although a window has two.
struct Landing : Buffers {
  static constexpr u32 kLanding = 5, kWindow = 2;
  explicit Landing(Role role) {
    phase.op = Op::write_imm;
    phase.window = kWindow;
    phase.target_slots = kLanding;
    phase.role = role;
    (role == Role::initiator ? queue.remote : queue.local) = nullptr;
  }
};

TEST(OpPayloadLanding, AResponderMarksTheSlotsThatMessagesLandIn) {
  for (u64 first = 0; first < 2 * u64{Landing::kLanding}; ++first) {
    Landing there(Role::responder);
    std::memset(there.remote, 0xab, sizeof there.remote);
    const OpPayload<OneLane> p(there.phase, there.queue);
    const auto slot_of = [&](u32 i) { return static_cast<u32>((first + i) % Landing::kWindow); };
    p.poison(kLane, first, 2, slot_of);
    std::vector<u32> expected = {static_cast<u32>(first % 5), static_cast<u32>((first + 1) % 5)};
    std::ranges::sort(expected);
    EXPECT_EQ(touched(there.remote, 16, 0xab), expected) << first;
    // Messages whose slots are marked are missing, each under its own name.
    Verdicts found;
    const auto check = [&] {
      found.clear();
      p.check(kLane, first, 2, 3, first + 1, slot_of, [&](u32 i, Verdict v, u64) { found[i] = v; });
    };
    check();
    EXPECT_EQ(found, (Verdicts{{0, Verdict::missing}, {1, Verdict::missing}})) << first;
    // And right when the initiator's bytes come.
    Landing here(Role::initiator);
    OpPayload<OneLane>(here.phase, here.queue).prepare(kLane, first, 2, slot_of);
    for (u32 i = 0; i < 2; ++i)
      std::memcpy(there.remote + (first + i) % 5 * kStride, here.local + slot_of(i) * kStride, kBytes);
    check();
    EXPECT_EQ(found, Verdicts{}) << first;
    // In each other's slots they are misplaced.
    std::swap_ranges(there.remote + first % 5 * kStride, there.remote + first % 5 * kStride + kBytes,
                     there.remote + (first + 1) % 5 * kStride);
    check();
    EXPECT_EQ(found, (Verdicts{{0, Verdict::misplaced}, {1, Verdict::misplaced}})) << first;
  }
}

TEST(OpPayloadLanding, WithoutLandingTheWindowsOwnSlotsAreMarked) {
  Buffers b;
  b.phase.op = Op::send;
  b.phase.role = Role::responder;
  std::memset(b.remote, 0xab, sizeof b.remote);
  const OpPayload<OneLane> p(b.phase, b.queue);
  p.poison(kLane, 20, 2, [](u32 i) { return 7 + 2 * i; });
  EXPECT_EQ(touched(b.remote, 16, 0xab), (std::vector<u32>{7, 9}));
}

/// Turns behind which no operation follows leave their slots alone, taken whole or in pieces.
TEST(OpPayloadTurns, TheLastOfASlotLeavesItAsItIs) {
  for (const bool pieces : {false, true})
    for (u32 last_from = 0; last_from <= 4; ++last_from) {
      SCOPED_TRACE(testing::Message() << pieces << " " << last_from);
      Buffers b;
      b.phase.op = Op::write;
      b.phase.window = 4;
      b.queue.count = 100;
      alignas(64) u8 words[4096] = {};
      CheckRing ring;
      static_assert(CheckRing::bytes(16, 0) <= sizeof words);
      ring.words = reinterpret_cast<u64*>(words);
      ring.capacity = 16;
      std::memset(b.local, 0xab, sizeof b.local);
      for (u32 i = 0; i < 4; ++i)
        *ring.entry(8 + i) = {.before = 4 + i, .slot = i, .last = static_cast<u16>(i >= last_from ? 1 : 0)};
      const auto turns = [&](const auto& warp) {
        const OpPayload<std::remove_cvref_t<decltype(warp)>> p(b.phase, b.queue);
        const auto nothing = [](u64, Verdict, u64) { ADD_FAILURE() << "nothing was to be checked"; };
        if (!pieces) return p.turns(warp, ring, 8, 4, 11, nothing);
        for (u32 i = 0; i < 4; ++i) p.piece(warp, ring, 8 + i, 0, kBytes, 11, nothing);
      };
      std::vector<u32> expected(last_from);
      std::iota(expected.begin(), expected.end(), 0u);
      turns(kLane);
      EXPECT_EQ(touched(b.local, 16, 0xab), expected);
      std::memset(b.local, 0xab, sizeof b.local);
      run_warp<2>(turns);
      EXPECT_EQ(touched(b.local, 16, 0xab), expected) << "by a warp, in more rounds than one";
    }
}

}  // namespace
}  // namespace doorbell::rma
