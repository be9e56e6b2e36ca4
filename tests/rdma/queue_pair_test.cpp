// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a queue pair handles entries that come at difficult moments, with threads as lanes.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "emulated_warp.hpp"
#include "loop/poll_pace.hpp"

namespace doorbell::rdma {
namespace {

constexpr u32 kRequests = 4;
constexpr u32 kLanes = 4;

/// A format whose device writes part A of an entry while somebody looks at part B.
template <class F>
struct Overtaking : F {
  struct Writing {
    Word16* to;
    Word16 part_a;
    std::once_flag once;
  };
  static inline std::unique_ptr<Writing> writing;
  static bool cqe_valid(const Word16& b, u32 pass) {
    if (writing && F::cqe_valid(b, pass))
      std::call_once(writing->once, [] { *writing->to = writing->part_a; });
    return F::cqe_valid(b, pass);
  }
};

/// The memory of one queue pair, and the device that completes its requests.
template <class F>
class Rings {
 public:
  Rings() {
    m_.sq_units = F::sq_units(kRequests, 0);
    m_.sq_requests = kRequests;
    m_.rq_entries = 4;
    m_.cq_entries = F::cq_entries(2 * kRequests);
    m_.recv_cq_entries = 4;
    m_.track_entries = 64;
    sq_.resize(u64{m_.sq_units} * F::kUnitParts);
    table_.resize(m_.sq_units * 2);
    cq_.assign(u64{m_.cq_entries} * F::kCqeParts, F::cqe_initial(0));
    m_.sq = sq_.data();
    m_.sq_table = table_.data();
    m_.cq = cq_.data();
    m_.track = track_.data();
    m_.sq_doorbell = &registers_[0];
    m_.cq_doorbell = &registers_[1];
  }
  [[nodiscard]] const QueuePairMemory& memory() const { return m_; }
  [[nodiscard]] Word16* entry(u32 n) { return &cq_[u64{n % m_.cq_entries} * F::kCqeParts]; }

  /// The completion of request n (from 0), as the device writes it.
  [[nodiscard]] std::array<Word16, F::kCqeParts> completion(u32 n) const {
    CqeFields f;
    f.completion.mark = n + 1;
    f.qpn = 7;
    f.ring_units = m_.sq_units;
    std::array<Word16, F::kCqeParts> parts{};
    F::encode_cqe(f, n / m_.cq_entries, parts.data());
    return parts;
  }

 private:
  QueuePairMemory m_;
  std::vector<Word16> sq_, cq_;
  std::vector<u64> table_;
  std::array<Word16, 64> track_{};
  std::array<u64, 2> registers_{};
};

template <class Format>
class QueuePairs : public testing::Test {};
using Formats = testing::Types<Bnxt, Ionic>;
TYPED_TEST_SUITE(QueuePairs, Formats);

TYPED_TEST(QueuePairs, APartThatIsOlderThanTheOwnershipBitIsReadAgain) {
  using F = Overtaking<TypeParam>;
  Rings<TypeParam> rings;
  QueuePairState state = initial_state(rings.memory());
  const u32 count = 3 * rings.memory().cq_entries;
  for (u32 n = 0; n < count; ++n) {
    const auto whole = rings.completion(n);
    Word16* const entry = rings.entry(n);
    std::copy(whole.begin(), whole.end(), entry);
    if (n % 3 == 0 && n >= rings.memory().cq_entries) {
      // The device has written part B; part A comes between the two looks at it.
      entry[F::kCqePartA] = {{~0u, ~0u, ~0u, ~0u}};
      F::writing = std::make_unique<typename F::Writing>();
      F::writing->to = entry + F::kCqePartA;
      F::writing->part_a = whole[F::kCqePartA];
    }
    std::array<u32, kLanes> taken{};
    run_warp<kLanes>([&](const auto& warp) {
      using Warp = std::decay_t<decltype(warp)>;
      QueuePair<Warp, F> qp(state);
      qp.post(warp, 1, [](u32) {
        WorkRequest r;
        r.bytes = 64;
        return r;
      });
      (void)qp.ring(warp);
      const auto polled = qp.poll(warp, 1);
      taken[warp.lane()] = polled.count;
      warp.sync();
      if (warp.lane() == 0) state = qp.state();
    });
    F::writing.reset();
    ASSERT_EQ(taken, (std::array<u32, kLanes>{1, 1, 1, 1})) << n;
    const QueuePairProgress& now = state.progress;
    ASSERT_EQ(now.completed, n + 1) << "the request was not found finished";
    ASSERT_EQ(now.protocol + now.duplicated + now.skipped, 0u) << n;
    // So that the next one here can be told from it.
    ASSERT_EQ(entry[F::kCqePartA].w[0], ~0u) << n;
    ASSERT_EQ(entry[F::kCqePartB], whole[F::kCqePartB]) << "its ownership bit must stay";
  }
}

/// Operations that are done `done` ticks after the doorbell, looked for in looks of `look` ticks, each of
/// which sees what was so half of that after its start: the first looks among the last half of `n` that came
/// too early, and the mean ticks until a look brought the completion.
struct Looks {
  double missed = 0;
  double mean = 0;
};
Looks look_for(PollPace& pace, u32 n, u32 look, const std::function<u32(u32)>& done) {
  Looks all;
  for (u32 i = 0; i < n; ++i) {
    u32 at = pace.wait();
    EXPECT_LE(at, look);
    bool first = true;
    for (;; at += look, first = false) {
      const bool there = at + look / 2 >= done(i);
      if (first && there) pace.hit();
      if (first && !there) pace.missed(look);
      if (first && !there && i >= n / 2) all.missed += 2.0 / n;
      if (!there) continue;
      if (i >= n / 2) all.mean += (at + look) * 2.0 / n;
      break;
    }
  }
  return all;
}

TEST(PollPace, WaitsUntilTheFirstLookHits) {
  PollPace pace;
  const Looks steady = look_for(pace, 4000, 2000, [](u32) { return 2400u; });
  EXPECT_LT(steady.missed, 0.1);
  EXPECT_LT(steady.mean, 2400 + 1000 + 250) << "half a look is the way back; without a wait it takes 4000";
  // The device has become faster, so fast that nothing needs to be waited for.
  const Looks fast = look_for(pace, 8000, 2000, [](u32) { return 900u; });
  EXPECT_EQ(fast.missed, 0);
  EXPECT_EQ(fast.mean, 2000);
  // And slow: a wait gains little, and is no longer than a look.
  const Looks slow = look_for(pace, 4000, 2000, [](u32 i) { return 50'000 + i % 7 * 600; });
  EXPECT_LT(slow.mean, 51'800 + 2000 + 1000);
  EXPECT_EQ(pace.wait(), 2000u);
}

TEST(PollPace, APauseIsNoLook) {
  PollPace pace;
  for (int i = 0; i < 100; ++i) pace.missed(u64{1} << 40);
  EXPECT_LE(pace.wait(), 1u << 20);
  for (int i = 0; i < 5000; ++i) pace.hit();
  EXPECT_EQ(pace.wait(), 0u);
}

}  // namespace
}  // namespace doorbell::rdma
