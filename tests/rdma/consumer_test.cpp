// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Gives completion entries back to the software NIC: all of them, and more than there are.

#include "rig.hpp"

namespace doorbell::rdma {
namespace {

template <class F>
class RdmaConsumer : public ::testing::Test {
 protected:
  /// Fills the completion queue: entries are looked at and kept.
  void fill() {
    while (q.object->state() == QpState::rts && taken < capacity()) {
      (void)q.submit(wr);
      ASSERT_TRUE(eventually([&] { return q.cq.poll(true).has_value(); }));
      ++taken;
    }
  }
  /// Entries that the device may fill: where positions are slots alone, one stays free.
  [[nodiscard]] u32 capacity() const {
    return Indices<F>::kConsumer == Counts::slots ? q.m.cq_entries - 1 : q.m.cq_entries;
  }
  /// Says that everything before entry `n` from the start has been taken.
  void give_back(u32 n) {
    RingPosition at;
    at.units = q.m.cq_entries;
    for (u32 i = 0; i < n; ++i) at = advance(at, 1, 1, 0);
    F::ring_cq(q.m.cq_record, q.m.cq_doorbell, at, q.m.cqn);
  }

  Rig<F> rig;
  RawQp<F> q = rig.loop(quick(), {.sq_requests = 16, .rq_requests = 4});
  Memory near{*rig.device, 4096}, far{*rig.device, 4096};
  WorkRequest wr = request(Op::write, near, far, 8);
  u32 taken = 0;
};
TYPED_TEST_SUITE(RdmaConsumer, FormatsAlike);

TYPED_TEST(RdmaConsumer, AFullQueueMayBeGivenBackWhole) {
  this->fill();
  for (int lap = 0; lap < 3; ++lap) {
    this->give_back(this->taken);
    for (u32 n = 0; n < this->capacity(); ++n, ++this->taken) {
      (void)this->q.submit(this->wr);
      ASSERT_TRUE(eventually([&] { return this->q.cq.poll(true).has_value(); })) << lap << ", entry " << n;
    }
  }
  EXPECT_EQ(this->q.object->state(), QpState::rts);
  EXPECT_EQ(this->rig.counter("invalid_doorbell_values"), 0u);
  EXPECT_EQ(this->rig.counter("cq_overflows"), 0u);
}

TYPED_TEST(RdmaConsumer, MoreThanWasWrittenIsNotBelieved) {
  if (Indices<TypeParam>::kConsumer == Counts::slots)
    GTEST_SKIP() << "every slot is possible in a full queue";
  this->fill();
  this->give_back(this->taken + 3);
  (void)this->q.submit(this->wr);
  ASSERT_TRUE(eventually([&] { return this->q.object->state() == QpState::error; }));
  EXPECT_EQ(this->rig.counter("cq_overflows"), 1u);
  EXPECT_EQ(this->rig.counter("invalid_doorbell_values"), 1u);
  EXPECT_FALSE(this->q.cq.poll(true)) << "an entry was overwritten";
}

}  // namespace
}  // namespace doorbell::rdma
