// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the software NIC interprets an initiator's index: where indices wrap, and for indices that no initiator
// can have written. How marks continue after 2^32 requests.

#include <gtest/gtest.h>

#include <vector>

#include "rdma/model/engine_thread.hpp"
#include "rdma/vendors/bnxt.hpp"
#include "rdma/vendors/mlx5.hpp"

namespace doorbell::rdma {
namespace {

RingPosition at(u32 units, u32 pass, u32 slot) {
  RingPosition p;
  p.units = units;
  p.pass = pass;
  p.slot = slot;
  p.running = pass * units + slot;
  return p;
}
RingPosition running(u32 n) {
  RingPosition p;
  p.units = 64;
  p.running = n;
  p.slot = n % 64;
  return p;
}

TEST(RdmaModelRings, DistancesAcrossTheWrap) {
  EXPECT_EQ(distance(running(0xffff), Counts::bits16, 0xffff), 0u);
  EXPECT_EQ(distance(running(0xffff), Counts::bits16, 0), 1u);
  EXPECT_EQ(distance(running(0x1fffe), Counts::bits16, 3), 5u);
  EXPECT_EQ(distance(running(5), Counts::bits16, 4), 0xffffu);
  EXPECT_EQ(distance(running(0xffffff), Counts::bits24, 0), 1u);
  EXPECT_EQ(distance(running(0x2fffffe), Counts::bits24, 3), 5u);
  EXPECT_EQ(distance(running(5), Counts::bits24, 4), 0xffffffu);
  // No power of two, as the rings of bnxt are.
  EXPECT_EQ(distance(at(768, 0, 767), Counts::two_turns, 768), 1u);
  EXPECT_EQ(distance(at(768, 1, 767), Counts::two_turns, 0), 1u);
  EXPECT_EQ(distance(at(768, 3, 767), Counts::two_turns, 767), 768u);
  EXPECT_EQ(distance(at(768, 2, 10), Counts::two_turns, 9), 1535u);
  EXPECT_EQ(distance(at(64, 7, 63), Counts::slots, 0), 1u);
  EXPECT_EQ(distance(at(64, 7, 3), Counts::slots, 2), 63u);
}

TEST(RdmaModelRings, WhatNoIndexIs) {
  EXPECT_EQ(distance(running(0), Counts::bits16, 0x10000), kNoIndex);
  EXPECT_EQ(distance(running(0), Counts::bits24, 0x1000000), kNoIndex);
  EXPECT_EQ(distance(at(768, 0, 0), Counts::two_turns, 1536), kNoIndex);
  EXPECT_EQ(distance(at(64, 0, 0), Counts::slots, 64), kNoIndex);
  EXPECT_EQ(distance(at(64, 0, 0), Counts::slots, kNoIndex), kNoIndex);
  DoorbellValue v;
  v.index = 767;
  v.epoch = 1;
  EXPECT_EQ(Indices<Bnxt>::send(nullptr, v, 768), 1535u);
  v.index = 768;
  EXPECT_EQ(Indices<Bnxt>::send(nullptr, v, 768), kNoIndex) << "a slot behind the ring's end";
}

TEST(RdmaModelRings, AnIndexInRangeMayStillBeImpossible) {
  using Update = WorkRing::Update;
  WorkRing r;
  r.at = at(64, 1, 60);
  r.capacity = 48;
  EXPECT_EQ(r.announce(Counts::two_turns, 124), Update::none) << "where it is";
  EXPECT_EQ(r.announce(Counts::two_turns, 2), Update::advanced) << "across both ends";
  EXPECT_EQ(r.announced, 6u);
  EXPECT_EQ(r.announce(Counts::two_turns, 2), Update::none) << "said again";
  EXPECT_EQ(r.announce(Counts::two_turns, 1), Update::invalid) << "less than before";
  EXPECT_EQ(r.announce(Counts::two_turns, 123), Update::invalid) << "behind what was taken";
  EXPECT_EQ(r.announce(Counts::two_turns, 45), Update::invalid) << "more than the ring has";
  EXPECT_EQ(r.announce(Counts::two_turns, 128), Update::invalid) << "no index at all";
  EXPECT_EQ(r.announced, 6u) << "nonsense changes nothing";
  EXPECT_EQ(r.announce(Counts::two_turns, 44), Update::advanced) << "all of it";
  EXPECT_EQ(r.announced, 48u);
  r.take(6, 3);
  EXPECT_EQ(r.announced, 42u);
  EXPECT_EQ(r.at.slot, 2u);
  EXPECT_EQ(r.at.pass, 2u);
  EXPECT_EQ(r.at.psn, 3u);
  r.take(50);
  EXPECT_EQ(r.announced, 0u) << "a request that says that it is longer than what was announced";
}

TEST(RdmaModelRings, ADoorbellIsForOneQueue) {
  using Queue = DoorbellValue::Queue;
  DoorbellValue v;
  v.id = 9;
  v.queue = Queue::send;
  EXPECT_TRUE(addressed(v, Queue::send, 9));
  EXPECT_FALSE(addressed(v, Queue::send, 8));
  EXPECT_FALSE(addressed(v, Queue::receive, 9));
  v.queue = Queue::by_register;
  EXPECT_TRUE(addressed(v, Queue::completion, 9));
  EXPECT_FALSE(addressed(v, Queue::completion, 10));
  v.queue = Queue::arm;
  EXPECT_FALSE(addressed(v, Queue::completion, 9));
}

/// bnxt counts requests modulo the ring's length, which is no power of two and does not divide 2^32.
TEST(RdmaModelRings, MarksGoOnAfter2To32Requests) {
  ModelConfig config;
  config.own_threads = false;
  ModelShared shared(config);
  const SoftwareAddressSpace space;
  EngineThread<Bnxt> engine(shared, space, nullptr, 0);

  constexpr u32 kUnits = 768, kEntries = 16;
  std::vector<Word16> sq(kUnits), cq(kEntries * Bnxt::kCqeParts);
  std::vector<u64> table(1024);
  u64 doorbells[3] = {};
  Qp q;
  QueuePairMemory& m = q.device_memory;
  m.sq = sq.data();
  m.sq_table = table.data();
  m.sq_units = kUnits;
  m.sq_doorbell = &doorbells[0];
  m.qpn = q.qpn = q.remote_qpn = 5;
  q.options.access = access::all;
  q.sq.memory.host = sq.data();
  q.sq.capacity = q.sq.at.units = kUnits;
  q.sq.marks = Bnxt::mark_modulo(m);
  q.sq.doorbell = m.sq_doorbell;
  q.rq.doorbell = &doorbells[1];
  q.cq.memory.host = cq.data();
  q.cq.capacity = q.cq.at.units = q.cq.consumed.units = kEntries;
  q.cq.doorbell = &doorbells[2];
  q.enter(QpState::rts);
  engine.add(q);
  q.sq.at.serial = ~0u - 3;

  const WorkRequest wr{.op = Op::write, .signalled = true};
  u32 last = 0;
  for (u32 i = 0; i < 8; ++i) {
    const RingPosition at = q.sq.at;
    for (u32 p = 0; p < Bnxt::parts(wr); ++p) sq[at.slot + p] = Bnxt::part(wr, at, m, p);
    table[Bnxt::table_index(at, m)] = Bnxt::table_entry(wr, at, m);
    Bnxt::ring_sq(m, advance(at, 1, Bnxt::units(wr), 1), 0);
    EXPECT_TRUE(engine.poll());
    const Word16* const entry = cq.data() + u64{i} * Bnxt::kCqeParts;
    ASSERT_TRUE(Bnxt::cqe_valid(entry[Bnxt::kCqePartB], 0)) << i;
    const Completion c = Bnxt::decode_cqe(entry[Bnxt::kCqePartA], entry[Bnxt::kCqePartB]);
    EXPECT_EQ(c.status, Status::ok);
    if (i > 0) {
      EXPECT_EQ(c.mark, (last + 1) % kUnits) << "request " << at.serial;
    }
    last = c.mark;
  }
  EXPECT_EQ(q.sq.at.serial, 4u);
}

}  // namespace
}  // namespace doorbell::rdma
