// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What a queue pair makes of entries that come at awkward moments, by lanes that are threads.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "emulated_warp.hpp"

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

  /// What completes request n (from 0), as the device writes it.
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
  QueuePairState state = fresh_state(rings.memory());
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
    ASSERT_EQ(state.completed, n + 1) << "the request was not found finished";
    ASSERT_EQ(state.protocol + state.duplicated + state.skipped, 0u) << n;
    // So that the next one here can be told from it.
    ASSERT_EQ(entry[F::kCqePartA].w[0], ~0u) << n;
    ASSERT_EQ(entry[F::kCqePartB], whole[F::kCqePartB]) << "its ownership bit must stay";
  }
}

}  // namespace
}  // namespace doorbell::rdma
