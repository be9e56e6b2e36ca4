// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The counts of a queue pair, for every format: marks of receives, marks of requests where these wrap, and
// the free entries of a completion queue.

#include <doorbell/rdma/bnxt.hpp>
#include <doorbell/rdma/ernic.hpp>
#include <doorbell/rdma/ionic.hpp>
#include <doorbell/rdma/mlx5.hpp>
#include <doorbell/rdma/queue_pair.hpp>
#include <gtest/gtest.h>

#include <array>
#include <type_traits>
#include <vector>

namespace doorbell::rdma {
namespace {

constexpr OneLane kLane;

struct Sizes {
  u32 requests = 4;
  u32 receives = 4;
  u32 completions = 16;          ///< a power of two
  u32 receive_completions = 16;  ///< likewise
};

/// A completion queue and the device that writes it.
template <class F>
struct DeviceCq {
  explicit DeviceCq(u32 entries) : parts(u64{entries} * F::kCqeParts) {
    for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = F::cqe_initial(i % F::kCqeParts);
    at.units = entries;
  }
  void write(const CqeFields& f) {
    F::encode_cqe(f, at.pass, parts.data() + u64{at.slot} * F::kCqeParts);
    at = advance(at, 1, 1, 0);
    if constexpr (F::kCqByIndex) store_release(&record[2], F::ring_index(at));
  }
  std::vector<Word16> parts;
  std::array<u32, 4> record{};
  RingPosition at;
};

template <class F>
struct Queues {
  explicit Queues(const Sizes& sizes = {}) : cq(sizes.completions), recv_cq(sizes.receive_completions) {
    m.sq_units = F::sq_units(sizes.requests, 0);
    m.sq_requests = sizes.requests;
    m.rq_entries = F::rq_entries(sizes.receives);
    m.cq_entries = sizes.completions;
    m.recv_cq_entries = sizes.receive_completions;
    m.track_entries = power_of_two_from(m.sq_units + 1);
    m.qpn = 7;
    sq.resize(u64{m.sq_units} * F::kUnitParts);
    rq.resize(u64{m.rq_entries} * F::kReceiveParts);
    table.resize(2 * u64{m.sq_units});
    track.resize(m.track_entries);
    m.sq = sq.data();
    m.rq = rq.data();
    m.sq_table = table.data();
    m.track = track.data();
    m.cq = cq.parts.data();
    m.recv_cq = recv_cq.parts.data();
    m.qp_record = qp_record.data();
    m.cq_record = cq.record.data();
    m.recv_cq_record = recv_cq.record.data();
    m.sq_doorbell = &registers[0];
    m.rq_doorbell = &registers[1];
    m.cq_doorbell = &registers[2];
    m.recv_cq_doorbell = &registers[3];
    state = initial_state(m);
  }
  /// The completion of the request at `p`, the first of its ring units.
  [[nodiscard]] CqeFields request(const RingPosition& p) const {
    CqeFields f;
    f.qpn = m.qpn;
    f.ring_units = m.sq_units;
    f.wr_id = u64{p.serial} + 1;
    f.completion.mark = F::kMark == Mark::unit ? p.running : p.serial + 1;
    return f;
  }
  /// The completion of receive `n` from 0.
  [[nodiscard]] CqeFields receive(u32 n) const {
    CqeFields f;
    f.op = Op::send;
    f.qpn = m.qpn;
    f.wr_id = u64{n} + 1;
    f.completion.receive = true;
    f.completion.mark = n;
    f.completion.bytes = 64;
    return f;
  }

  QueuePairMemory m;
  std::vector<Word16> sq, rq, track;
  std::vector<u64> table;
  std::array<u32, 4> qp_record{};
  std::array<u64, 4> registers{};
  DeviceCq<F> cq, recv_cq;
  QueuePairState state;
};

template <class F>
using Pair = QueuePair<OneLane, F>;

template <class Format>
class QueuePairCounts : public testing::Test {};
using Formats = testing::Types<Mlx5, Bnxt, Ionic, IonicV2, Ernic>;
TYPED_TEST_SUITE(QueuePairCounts, Formats);

// --- receives ----------------------------------------------------------------------------------------------

TYPED_TEST(QueuePairCounts, ReceivesCompleteInTheirOrder) {
  using F = TypeParam;
  const auto post = [](Pair<F>& qp) {
    qp.post_receives(kLane, 1, [](u32) { return ReceiveRequest{0, 0, 64}; });
    (void)qp.ring_receives(kLane);
  };
  // How far behind or ahead of the due one the odd mark is.
  for (const u32 off : {1u, 2u, ~0u, ~1u}) {
    Queues<F> queues;
    Pair<F> qp(queues.state);
    const u32 laps = 3 * queues.m.rq_entries;
    for (u32 n = 0; n < laps; ++n) {
      post(qp);
      queues.recv_cq.write(queues.receive(n));
      const auto polled = qp.poll_receives(kLane);
      ASSERT_EQ(polled.count, 1u);
      ASSERT_EQ(polled.serial, n + 1);
      ASSERT_EQ(qp.protocol(), 0u) << "receive " << n;
    }
    post(qp);
    queues.recv_cq.write(queues.receive(laps + off));
    EXPECT_EQ(qp.poll_receives(kLane).count, 1u);
    EXPECT_EQ(qp.protocol(), 1u) << "off by " << static_cast<int>(off);
    EXPECT_EQ(qp.receives_completed(), laps + 1) << "it counts, because it used a receive up";
  }
}

TYPED_TEST(QueuePairCounts, AFlushOfAllReceivesEndsThemAll) {
  using F = TypeParam;
  Queues<F> queues;
  Pair<F> qp(queues.state);
  qp.post_receives(kLane, 3, [](u32) { return ReceiveRequest{0, 0, 64}; });
  (void)qp.ring_receives(kLane);
  queues.recv_cq.write(queues.receive(0));
  EXPECT_EQ(qp.poll_receives(kLane).serial, 1u);
  CqeFields f = queues.receive(1);
  f.completion.status = Status::flushed;
  f.completion.flush_all = true;
  queues.recv_cq.write(f);
  const auto polled = qp.poll_receives(kLane);
  ASSERT_EQ(polled.count, 1u);
  EXPECT_EQ(polled.mine.status, Status::flushed);
  // The others write an entry for each.
  constexpr bool kAtOnce = std::is_same_v<F, Bnxt> || std::is_same_v<F, Ionic> || std::is_same_v<F, IonicV2>;
  constexpr u32 kEnded = kAtOnce ? 3 : 2;
  EXPECT_EQ(polled.mine.flush_all, kAtOnce);
  EXPECT_EQ(polled.serial, kEnded);
  EXPECT_EQ(qp.receives_completed(), kEnded);
  EXPECT_EQ(qp.protocol(), 0u);
}

// --- requests ----------------------------------------------------------------------------------------------

/// A queue pair that has done `serial` requests of one unit each, all of them signalled and answered.
template <class F>
QueuePairState after(const Queues<F>& queues, u32 serial) {
  QueuePairState s = queues.state;
  QueuePairProgress& p = s.progress;
  WorkRequest wr;
  wr.bytes = 64;
  const u32 units = F::units(wr);
  p.sq.serial = p.completed = p.signalled = p.answered = serial;
  p.sq.running = p.freed = serial * units;
  p.sq.slot = static_cast<u32>(u64{serial} * units % queues.m.sq_units);
  p.sq.pass = static_cast<u32>(u64{serial} * units / queues.m.sq_units);
  const u32 modulo = F::mark_modulo(queues.m);
  p.last_mark = F::kMark == Mark::unit ? p.sq.running - units : modulo != 0 ? serial % modulo : serial;
  return s;
}

TYPED_TEST(QueuePairCounts, MarksOfRequestsWrap) {
  using F = TypeParam;
  // 16 and 24 bits, and the length of bnxt's ring.
  for (const u32 begin : {0xfff8u, 0xfffff8u, 0x1fffff8u, 760u}) {
    Queues<F> queues;
    QueuePairState state = after(queues, begin);
    Pair<F> qp(state);
    const auto post = [&](u32 n) {
      RingPosition last = qp.state().progress.sq;
      WorkRequest wr;
      wr.bytes = 64;
      last = advance(last, n - 1, F::units(wr), 1);
      qp.post(kLane, n, [&](u32 i) {
        WorkRequest r = wr;
        r.signalled = i + 1 == n;
        return r;
      });
      (void)qp.ring(kLane);
      return last;
    };
    u32 done = begin;
    for (u32 round = 0; round < 16; ++round)
      // Alone, which has a way of its own, and as the last of several.
      for (const u32 n : {1u, 3u}) {
        const RingPosition last = post(n);
        queues.cq.write(queues.request(last));
        const auto polled = qp.poll(kLane, n);
        done += n;
        ASSERT_EQ(polled.count, 1u) << done;
        EXPECT_FALSE(polled.mine.ignore) << done;
        EXPECT_EQ(polled.serial, done);
        ASSERT_EQ(qp.completed(), done);
        ASSERT_EQ(qp.protocol() + qp.duplicated() + qp.skipped(), 0u) << done;
      }
    // Once more the same one: before the next is answered it says nothing new.
    RingPosition before = qp.state().progress.sq;
    WorkRequest wr;
    wr.bytes = 64;
    before.serial -= 1;
    before.running -= F::units(wr);
    const RingPosition next = post(1);
    queues.cq.write(queues.request(before));
    (void)qp.poll(kLane);
    EXPECT_EQ(qp.duplicated(), 1u);
    EXPECT_EQ(qp.completed(), done);
    queues.cq.write(queues.request(next));
    (void)qp.poll(kLane);
    EXPECT_EQ(qp.completed(), done + 1);
    EXPECT_EQ(qp.duplicated(), 1u);
    EXPECT_EQ(qp.protocol() + qp.skipped(), 0u);
  }
}

TYPED_TEST(QueuePairCounts, AMarkOfWhatWasNotPostedIsCounted) {
  using F = TypeParam;
  Queues<F> queues;
  Pair<F> qp(queues.state);
  WorkRequest wr;
  wr.bytes = 64;
  RingPosition at = queues.state.progress.sq;
  qp.post(kLane, 2, [&](u32) { return wr; });
  (void)qp.ring(kLane);
  for (u32 ahead = 2; ahead < 5; ++ahead) {
    queues.cq.write(queues.request(advance(at, ahead, F::units(wr), 1)));
    const auto polled = qp.poll(kLane);
    ASSERT_EQ(polled.count, 1u);
    EXPECT_TRUE(polled.mine.ignore);
    EXPECT_EQ(qp.protocol(), ahead - 1);
  }
  EXPECT_EQ(qp.completed(), 0u);
  EXPECT_EQ(qp.duplicated(), 0u);
}

TYPED_TEST(QueuePairCounts, ACompletionThatCoversOthersTellsThatTheirsAreMissing) {
  using F = TypeParam;
  WorkRequest wr;
  wr.bytes = 64;
  // Which of four requests ask for a completion, and which of those are answered.
  struct Case {
    u32 signalled, answered, skipped;
  };
  for (const Case& c : {Case{0b1111, 0b1111, 0}, Case{0b1111, 0b1000, 3}, Case{0b1111, 0b1010, 2},
                        Case{0b1010, 0b1000, 1}, Case{0b1000, 0b1000, 0}, Case{0b1101, 0b1001, 1}}) {
    SCOPED_TRACE(testing::Message() << c.signalled << ' ' << c.answered);
    Queues<F> queues;
    Pair<F> qp(queues.state);
    const RingPosition first = queues.state.progress.sq;
    qp.post(kLane, 4, [&](u32 i) {
      WorkRequest r = wr;
      r.signalled = (c.signalled >> i & 1) != 0;
      return r;
    });
    (void)qp.ring(kLane);
    for (u32 i = 0; i < 4; ++i) {
      if ((c.answered >> i & 1) == 0) continue;
      queues.cq.write(queues.request(advance(first, i, F::units(wr), 1)));
      const auto polled = qp.poll(kLane, 4);
      EXPECT_EQ(polled.count, 1u);
      EXPECT_EQ(polled.serial, i + 1);
    }
    EXPECT_EQ(qp.completed(), 4u);
    EXPECT_EQ(qp.skipped(), c.skipped);
    EXPECT_EQ(qp.protocol() + qp.duplicated(), 0u);
  }
}

// --- completion queues -------------------------------------------------------------------------------------

/// Half of what a completion queue has beyond the requests is kept for entries that come twice.
u32 kept(u32 entries, u32 requests) {
  return (entries - 1 - requests) / 2;
}

TYPED_TEST(QueuePairCounts, EntriesForCompletionsThatComeTwiceStayFree) {
  using F = TypeParam;
  for (const u32 entries : {8u, 16u, 32u, 64u})
    for (const u32 requests : {1u, 4u, 6u})
      for (u32 batch = 1; batch <= requests; ++batch) {
        SCOPED_TRACE(testing::Message() << entries << " entries, " << requests << " requests by " << batch);
        Queues<F> queues({.requests = requests, .completions = entries});
        Pair<F> qp(queues.state);
        WorkRequest wr;
        wr.bytes = 64;
        u32 given_back = 0, unrung = 0;
        std::vector<RingPosition> posted;
        std::size_t answered = 0;
        for (u32 round = 0; round < 100; ++round) {
          while (qp.room() >= batch) {
            for (u32 i = 0; i < batch; ++i)
              posted.push_back(advance(qp.state().progress.sq, i, F::units(wr), 1));
            qp.post(kLane, batch, [&](u32) { return wr; });
            (void)qp.ring(kLane);
            const QueuePairProgress& now = qp.state().progress;
            const u32 in_flight = now.sq.serial - now.completed;
            ASSERT_LE(now.cq_unrung + in_flight + kept(entries, requests), entries - 1) << round;
            given_back += now.cq_unrung < unrung ? 1 : 0;
            unrung = now.cq_unrung;
          }
          queues.cq.write(queues.request(posted[answered++]));
          ASSERT_EQ(qp.poll(kLane, 1).count, 1u);
          given_back += qp.state().progress.cq_unrung < unrung ? 1 : 0;
          unrung = qp.state().progress.cq_unrung;
        }
        EXPECT_EQ(qp.completed(), 100u);
        if (entries == 64 && requests == 4) {
          EXPECT_LE(given_back, 100u / 16) << "not more often than that takes";
        }
      }
}

TYPED_TEST(QueuePairCounts, TheSameForReceives) {
  using F = TypeParam;
  for (const u32 entries : {128u, 256u}) {
    Queues<F> queues({.receives = 30, .receive_completions = entries});
    Pair<F> qp(queues.state);
    const u32 all = queues.m.rq_entries;
    ASSERT_LT(all, entries);
    for (u32 n = 0; n < 1000; ++n) {
      while (qp.receive_room() >= 3) qp.post_receives(kLane, 3, [](u32) { return ReceiveRequest{0, 0, 64}; });
      (void)qp.ring_receives(kLane);
      const QueuePairProgress& now = qp.state().progress;
      ASSERT_LE(now.recv_cq_unrung + now.rq.serial - now.receives_completed + kept(entries, all), entries - 1)
          << n;
      queues.recv_cq.write(queues.receive(n));
      ASSERT_EQ(qp.poll_receives(kLane).count, 1u);
    }
    EXPECT_EQ(qp.protocol(), 0u);
  }
}

}  // namespace
}  // namespace doorbell::rdma
