// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Ring arithmetic of the initiator's side: wraps, room, phases, doorbell values, shadow doorbells.

#include <doorbell/nvme/queue_pair.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <random>
#include <set>

#include "ring_controller.hpp"

namespace doorbell::nvme {
namespace {

const OneLane lane;

Sqe entry(u64 serial, u16 cid) {
  Sqe e = io_command(IoOpcode::read, cid, 1, serial, 1, serial * 4096, ~serial);
  e.mptr = serial ^ 0x5555;
  e.cdw13 = static_cast<u32>(serial);
  e.cdw15 = ~static_cast<u32>(serial);
  return e;
}

/// Random posting, fetching and completing, against a controller that throws when a rule is broken.
void exercise(u32 entries, u32 batch, u32 ring_every, u64 seed) {
  SCOPED_TRACE(testing::Message() << "entries " << entries << " batch " << batch << " cq ring every "
                                  << ring_every);
  RingController device(entries);
  QueuePair<OneLane> qp(device.memory());
  std::mt19937_64 random(seed);
  const u64 total = std::min<u64>(u64{entries} * 5 + 13, 200'000);
  std::deque<u16> fetched;    // by the controller, not completed
  std::set<u16> outstanding;  // cids in use
  std::deque<u16> free_cids;
  for (u32 c = 0; c < entries - 1; ++c) free_cids.push_back(static_cast<u16>(c));
  u64 posted = 0, seen = 0, completed = 0, rung_tail = 0, slot_of_fetch = 0;
  u32 sq_unfetched = 0;  // as the initiator may know it: what no completion has covered

  while (completed < total) {
    ASSERT_EQ(qp.room(), entries - 1 - sq_unfetched);
    // A driver keeps no more in flight than the completion queue can take.
    const u64 cq_free = qp.cq_room() - std::min<u64>(qp.cq_room(), outstanding.size());
    const u64 n =
        std::min<u64>({random() % (batch + 1), qp.room(), free_cids.size(), cq_free, total - posted});
    std::vector<u16> cids;
    for (u64 i = 0; i < n; ++i) {
      cids.push_back(free_cids.front());
      outstanding.insert(free_cids.front());
      free_cids.pop_front();
    }
    if (n > 0) {
      qp.post(lane, static_cast<u32>(n), [&](u32 i) { return entry(posted + i, cids[i]); });
      sq_unfetched += static_cast<u32>(n);
      posted += n;
    }
    if (random() % 3 != 0) {
      ASSERT_EQ(qp.ring(lane), 1u);
      rung_tail = posted;
      ASSERT_EQ(device.tail(), posted % entries);
    }

    for (u64 k = random() % (batch + 2); k > 0 && device.announced() > 0; --k) {
      const Sqe e = device.fetch();
      ASSERT_LT(slot_of_fetch, rung_tail);
      const Sqe want = entry(slot_of_fetch, e.cid);
      ASSERT_EQ(std::memcmp(&e, &want, sizeof e), 0) << "entry " << slot_of_fetch;
      ++slot_of_fetch;
      fetched.push_back(e.cid);
    }
    for (u64 k = random() % (batch + 2); k > 0 && !fetched.empty() && !device.cq_full(); --k) {
      const u64 which = random() % fetched.size();
      device.complete(fetched[which], 0, fetched[which] * 3u);
      fetched.erase(fetched.begin() + static_cast<std::ptrdiff_t>(which));
    }

    while (true) {
      const auto p = qp.poll(lane);
      if (p.count == 0) break;
      ASSERT_EQ(p.count, 1u);
      ASSERT_EQ(outstanding.erase(p.mine.cid), 1u) << "cid " << p.mine.cid;
      ASSERT_EQ(p.mine.dw0, p.mine.cid * 3u);
      free_cids.push_back(p.mine.cid);
      ++completed;
      ++seen;
      sq_unfetched = static_cast<u32>((posted % entries + entries - p.mine.sq_head) % entries);
      ASSERT_EQ(qp.cq_unrung(), seen);
      ASSERT_EQ(qp.cq_room(), entries - 1 - seen);
      if (seen >= ring_every) {
        (void)qp.ring_cq(lane);
        ASSERT_EQ(device.cq_head(), completed % entries);
        seen = 0;
      }
    }
    if (seen > 0 && outstanding.empty()) {  // nothing else would free the entries
      (void)qp.ring_cq(lane);
      seen = 0;
    }
    if (seen > 0 && qp.cq_room() <= outstanding.size()) {
      (void)qp.ring_cq(lane);
      seen = 0;
    }
  }
  EXPECT_EQ(posted, total);
  EXPECT_TRUE(outstanding.empty());
  EXPECT_EQ(qp.bad_sq_heads(), 0u);
  EXPECT_EQ(qp.state().sq_tail, total % entries);
  EXPECT_EQ(qp.state().cq_head, total % entries);
  EXPECT_EQ(qp.state().phase, (total / entries) % 2 == 0 ? 1u : 0u);
  EXPECT_EQ(device.phase(), qp.state().phase);
}

TEST(QueuePair, EverySmallSizeAndBatch) {
  for (u32 entries = 2; entries <= 9; ++entries)
    for (u32 batch = 1; batch < entries; ++batch)
      for (const u32 every : {1u, 2u, entries - 1}) exercise(entries, batch, every, entries * 100 + batch);
}

TEST(QueuePair, LargeSizes) {
  for (const u32 entries : {63u, 64u, 65u, 1000u, 1024u, 4095u, 4096u}) exercise(entries, 33, 17, entries);
  exercise(65536, 1023, 500, 7);
  exercise(65535, 1023, 65534, 8);
}

TEST(QueuePair, HoldsOneLessThanItsEntries) {
  for (u32 entries = 2; entries <= 9; ++entries) {
    RingController device(entries);
    QueuePair<OneLane> qp(device.memory());
    EXPECT_EQ(qp.room(), entries - 1);
    qp.post(lane, entries - 1, [](u32 i) { return entry(i, static_cast<u16>(i)); });
    EXPECT_EQ(qp.room(), 0u);
    EXPECT_EQ(device.announced(), 0u) << "visible before the doorbell";
    (void)qp.ring(lane);
    EXPECT_EQ(device.announced(), entries - 1);
    // The controller took one entry: that one is free, though its command still runs.
    (void)device.fetch();
    device.complete(0);
    ASSERT_EQ(qp.poll(lane).count, 1u);
    EXPECT_EQ(qp.room(), 1u);
  }
}

TEST(QueuePair, SqHeadRunsAheadOfCompletions) {
  RingController device(8);
  QueuePair<OneLane> qp(device.memory());
  qp.post(lane, 7, [](u32 i) { return entry(i, static_cast<u16>(i)); });
  (void)qp.ring(lane);
  for (int i = 0; i < 7; ++i) (void)device.fetch();
  device.complete(3);
  ASSERT_EQ(qp.poll(lane).count, 1u);
  EXPECT_EQ(qp.room(), 7u);  // all were fetched
}

TEST(QueuePair, ImpossibleSqHeadsAreCountedAndIgnored) {
  RingController device(8);
  QueuePair<OneLane> qp(device.memory());
  qp.post(lane, 3, [](u32 i) { return entry(i, static_cast<u16>(i)); });
  (void)qp.ring(lane);
  device.complete_as(0, 0, 0, 1, 8);  // not an index
  ASSERT_EQ(qp.poll(lane).count, 1u);
  EXPECT_EQ(qp.bad_sq_heads(), 1u);
  EXPECT_EQ(qp.room(), 4u);
  device.complete_as(1, 0, 0, 1, 5);  // beyond the tail
  ASSERT_EQ(qp.poll(lane).count, 1u);
  EXPECT_EQ(qp.bad_sq_heads(), 2u);
  device.complete_as(1, 0, 0, 1, 2);
  ASSERT_EQ(qp.poll(lane).count, 1u);
  EXPECT_EQ(qp.room(), 6u);
  device.complete_as(2, 0, 0, 1, 1);  // backwards
  ASSERT_EQ(qp.poll(lane).count, 1u);
  EXPECT_EQ(qp.bad_sq_heads(), 3u);
  EXPECT_EQ(qp.room(), 6u);
}

TEST(QueuePair, OldEntriesAreNotNewAfterAWrap) {
  for (u32 entries = 2; entries <= 9; ++entries) {
    RingController device(entries);
    QueuePair<OneLane> qp(device.memory());
    for (u32 i = 0; i < entries * 6; ++i) {
      EXPECT_EQ(qp.poll(lane).count, 0u);
      qp.post(lane, 1, [](u32) { return entry(0, 5); });
      (void)qp.ring(lane);
      (void)device.fetch();
      device.complete(5);
      EXPECT_EQ(qp.poll(lane).count, 1u);
      (void)qp.ring_cq(lane);
    }
  }
}

TEST(QueuePair, StateCarriesOver) {
  RingController device(5);
  QueuePairState state;
  state.memory = device.memory();
  for (u32 i = 0; i < 23; ++i) {
    QueuePair<OneLane> qp(state);
    qp.post(lane, 1, [&](u32) { return entry(i, static_cast<u16>(i)); });
    (void)qp.ring(lane);
    EXPECT_EQ(device.fetch().cid, i);
    device.complete(static_cast<u16>(i));
    const auto p = qp.poll(lane);
    ASSERT_EQ(p.count, 1u);
    EXPECT_EQ(p.mine.cid, i);
    if (i % 3 == 2) (void)qp.ring_cq(lane);
    state = qp.state();
  }
}

/// The decision to write the register against its definition: did the value pass eventidx?
TEST(QueuePair, ShadowDoorbellWritesTheRegisterWhenItPassesTheEventIndex) {
  for (u32 entries : {2u, 3u, 8u}) {
    for (u32 event = 0; event < entries; ++event) {
      for (u32 batch = 1; batch < entries; ++batch) {
        RingController device(entries);
        QueuePairMemory m = device.memory();
        u32 sq_shadow = 0, cq_shadow = 0, sq_event = event, cq_event = 0;
        u32 sq_register = ~0u, cq_register = ~0u;
        m.sq_doorbell = &sq_register;
        m.cq_doorbell = &cq_register;
        m.sq_shadow = &sq_shadow;
        m.cq_shadow = &cq_shadow;
        m.sq_eventidx = &sq_event;
        m.cq_eventidx = &cq_event;
        QueuePair<OneLane> qp(m);
        qp.post(lane, batch, [](u32 i) { return entry(i, static_cast<u16>(i)); });
        const u32 writes = qp.ring(lane);
        EXPECT_EQ(sq_shadow, batch);
        const bool passed = event < batch;  // from 0 to batch goes over `event`
        EXPECT_EQ(writes, passed ? 1u : 0u) << entries << ' ' << event << ' ' << batch;
        EXPECT_EQ(sq_register, passed ? batch : ~0u);
      }
    }
  }
}

TEST(QueuePair, EventIndexRuleOverTheWholeCircle) {
  for (u32 event = 0; event < 65536; event += 257)
    for (u32 old = 0; old < 65536; old += 509)
      for (const u32 step : {1u, 2u, 63u, 1000u, 65535u}) {
        bool passed = false;
        const u32 distance = (event - old) & 0xffff;  // steps from old to event
        passed = distance < step;
        ASSERT_EQ(register_write_needed(static_cast<u16>(event), static_cast<u16>(old + step),
                                        static_cast<u16>(old)),
                  passed);
      }
}

TEST(Wire, SqePartsAreTheStruct) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 1000; ++i) {
    u64 raw[8];
    for (u64& w : raw) w = random();
    Sqe e;
    std::memcpy(static_cast<void*>(&e), raw, sizeof e);
    Word16 parts[kSqeParts];
    for (u32 p = 0; p < kSqeParts; ++p) parts[p] = sqe_part(e, p);
    ASSERT_EQ(std::memcmp(parts, raw, sizeof raw), 0);
    Cqe c;
    std::memcpy(static_cast<void*>(&c), raw, sizeof c);
    Word16 w;
    std::memcpy(&w, raw, sizeof w);
    ASSERT_TRUE(encode_cqe(c) == w);
    const Cqe back = decode_cqe(w);
    ASSERT_EQ(std::memcmp(&back, &c, sizeof c), 0);
  }
}

}  // namespace
}  // namespace doorbell::nvme
