// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The NVMe model's engine round by round, in the test's own thread: doorbell values that are indices but
// impossible ones. Then a whole model with queues to which it cannot write.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>

#include "idle_gpu.hpp"
#include "nvme/conformance/raw_controller.hpp"
#include "nvme/model/controller.hpp"

namespace doorbell::nvme {
namespace {

using testing_raw::eventually;
using testing_raw::RawController;
using testing_raw::RawQueue;

/// More rounds than an engine takes between two looks at what it need not see at once.
constexpr u32 kManyRounds = 10'000;

ModelConfig small() {
  ModelConfig c;
  c.capacity_bytes = u64{1} << 20;
  return c;
}

/// An engine with one queue pair, its doorbells and the host's side of its rings.
class Rig {
 public:
  Rig(u32 sq_entries, u32 cq_entries, const ModelConfig& config = small())
      : shared(config),
        sq_entries_(sq_entries),
        cq_entries_(cq_entries),
        sq_(space_, Place::pageable, u64{sq_entries} * kSqeBytes, Access::read),
        cq_(space_, Place::pageable, u64{cq_entries} * kCqeBytes, Access::write) {
    CompletionQueue c;
    c.qid = 1;
    c.entries = cq_entries;
    c.iova = cq_.iova();
    c.ring = reinterpret_cast<Word16*>(cq_.region().host());
    c.head_word = &head;
    c.bar = 1;
    engine.add(std::move(c));
    SubmissionQueue s;
    s.qid = s.cqid = 1;
    s.entries = sq_entries;
    s.iova = sq_.iova();
    s.host = reinterpret_cast<const Sqe*>(sq_.region().host());
    s.tail_register = &tail;
    engine.add(std::move(s));
    for (u32 i = 0; i < sq_entries; ++i) {
      const Sqe e = flush_command(static_cast<u16>(i), 1);
      std::memcpy(sq_.region().host() + u64{i} * kSqeBytes, &e, sizeof e);
    }
  }

  /// Rounds until there is nothing to do.
  void settle() {
    while (engine.poll()) {
    }
    for (u32 i = 0; i < kManyRounds; ++i) EXPECT_FALSE(engine.poll());
  }
  /// Announces `n` commands more.
  void post(u32 n) { store_release(&tail, (tail + n) % sq_entries_); }
  /// Completions that have come, without giving entries back.
  [[nodiscard]] u32 taken() {
    u32 n = 0;
    for (; (at(next_).status & 1u) == phase_; ++n)
      if (++next_ == cq_entries_) {
        next_ = 0;
        phase_ ^= 1;
      }
    return n;
  }
  [[nodiscard]] u32 next() const { return next_; }
  /// The completion entry at ring position `i` as it lies in memory.
  [[nodiscard]] Cqe at(u32 i) const {
    return decode_cqe(load16_acquire(reinterpret_cast<const Word16*>(cq_.region().host()) + i));
  }
  [[nodiscard]] const SubmissionQueue& sq() { return *engine.find_sq(1); }
  [[nodiscard]] const CompletionQueue& cq() { return *engine.find_cq(1); }
  [[nodiscard]] u64 invalid() const { return shared.invalid_doorbell_values.load(); }

  ModelShared shared;
  u32 tail = 0;
  u32 head = 0;

 private:
  SoftwareAddressSpace space_;
  u32 sq_entries_;
  u32 cq_entries_;
  Mapped sq_;
  Mapped cq_;
  u32 next_ = 0;
  u32 phase_ = 1;

 public:
  IoEngine engine{shared, space_, nullptr, 0};
};

/// Every tail is an index; what is impossible is one that passes commands that are not fetched yet.
TEST(NvmeEngine, ATailBeyondTheRoomIsRefused) {
  for (const bool fits : {true, false}) {
    SCOPED_TRACE(fits ? "fills the ring" : "passes the head by one");
    Rig r(200, 400);
    r.tail = 150;
    ASSERT_TRUE(r.engine.poll());
    // One burst is fetched; the tail may now come round to the entry before the head.
    const u32 head = r.sq().head;
    ASSERT_GT(head, 0u);
    ASSERT_LT(head, 150u) << "it fetches all at once: nothing is in the way of a tail";
    r.tail = fits ? head - 1 : head;
    ASSERT_TRUE(r.engine.poll());
    EXPECT_EQ(r.sq().tail, fits ? head - 1 : 150);
    r.settle();
    EXPECT_EQ(r.invalid(), fits ? 0u : 1u) << "reported once";
    EXPECT_EQ(r.taken(), fits ? 200 + head - 1 : 150);
    // The next good value counts from the last good one.
    store_release(&r.head, r.next());
    r.tail = (r.sq().tail + 3) % 200;
    r.settle();
    EXPECT_EQ(r.taken(), 3u);
  }
}

TEST(NvmeEngine, ATailThatIsNoIndexIsRefused) {
  for (const u32 bad : {200u, 201u, 0x10000u, ~0u}) {
    Rig r(200, 400);
    r.tail = bad;
    r.settle();
    EXPECT_EQ(r.invalid(), 1u);
    EXPECT_EQ(r.taken(), 0u);
    r.tail = 199;
    r.settle();
    EXPECT_EQ(r.taken(), 199u);
    EXPECT_EQ(r.invalid(), 1u);
  }
}

/// A host gives back what it has taken; entries that were never written it cannot have taken.
TEST(NvmeEngine, AHeadBeyondTheTailIsRefused) {
  Rig r(64, 8);
  r.post(3);
  r.settle();
  ASSERT_EQ(r.taken(), 3u);
  store_release(&r.head, 5);
  r.settle();
  EXPECT_EQ(r.invalid(), 1u) << "reported once";
  EXPECT_EQ(r.cq().head, 0u) << "nothing was given back";
  // Room for 4 more: the entries that the bad value would have freed stay as they are.
  r.post(5);
  r.settle();
  EXPECT_EQ(r.taken(), 4u);
  EXPECT_EQ(r.cq().waiting.size(), 1u);
  store_release(&r.head, r.next());
  r.settle();
  EXPECT_EQ(r.taken(), 1u);
  EXPECT_EQ(r.invalid(), 1u);
}

/// Up to the tail, not beyond it, on both sides of the ring's end.
TEST(NvmeEngine, AHeadAtTheTailIsTaken) {
  Rig r(64, 8);
  u64 refused = 0;
  for (u32 round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    r.post(3);
    r.settle();
    ASSERT_EQ(r.taken(), 3u);
    store_release(&r.head, (r.next() + 1) % 8);
    r.settle();
    EXPECT_EQ(r.invalid(), ++refused);
    store_release(&r.head, r.next());
    r.settle();
    EXPECT_EQ(r.cq().head, r.next());
    EXPECT_EQ(r.invalid(), refused);
  }
}

/// Commands due when a queue is deleted have completed, though no round came between; others are aborted.
TEST(NvmeEngine, WhatIsDueCompletesBeforeADeletion) {
  constexpr u64 kLatencyNs = 20'000'000;
  for (const bool due : {true, false}) {
    ModelConfig config = small();
    config.latency_ns = due ? kLatencyNs : u64{3600} * 1'000'000'000;
    Rig r(8, 8, config);
    r.post(2);
    (void)r.engine.poll();
    const u64 until = wall_ns() + kLatencyNs;
    while (due && wall_ns() < until) std::this_thread::yield();
    r.engine.delete_sq(1);
    for (u32 i = 0; i < 2; ++i)
      EXPECT_EQ(status_of(r.at(i)).type_and_code(), due ? status::success : status::sq_deleted);
    EXPECT_EQ(r.taken(), 2u);
  }
}

// --- queues that a model cannot reach ----------------------------------------------------------------

/// A model without a DMA agent, and queue memory of a GPU, which it therefore can neither read nor write.
struct Unreachable {
  explicit Unreachable(u32 threads) {
    ModelConfig config = small();
    config.threads = threads;
    c.emplace(std::make_unique<ModelController>(config, "model"));
    c->enable();
  }
  [[nodiscard]] u16 create(u16 qid, Iova sq, Iova cq) {
    if (const u16 st = c->status(create_cq_command(0, qid, 16, cq)); st != 0) return st;
    return c->status(create_sq_command(0, qid, qid, 16, sq));
  }
  /// The device reports a fatal status, and a reset makes it whole again.
  void expect_fatal_until_reset() {
    EXPECT_TRUE(eventually([&] { return (c->csts() & csts::fatal) != 0; }));
    EXPECT_NE(c->csts() & csts::ready, 0u) << "RDY stays until EN is cleared";
    c->disable();
    EXPECT_EQ(c->csts(), 0u);
    c->enable();
    RawQueue* const q = c->create(1, 16, 16);
    q->submit(flush_command(9, 1));
    EXPECT_EQ(q->wait().cid, 9);
    EXPECT_EQ(c->csts() & csts::fatal, 0u);
  }

  std::shared_ptr<IdleGpu> gpu = std::make_shared<IdleGpu>();
  std::optional<RawController> c;
};

/// "A fatal controller error that could not be communicated in the appropriate Completion Queue."
TEST(NvmeModel, ACompletionThatCannotBeWrittenIsFatal) {
  for (const u32 threads : {1u, 2u}) {
    Unreachable u(threads);
    const u16 qid = static_cast<u16>(threads);  // of the last device thread
    RawQueue* const q = u.c->queue(qid, 16, 16);
    const Mapped away(u.c->interface().address_space(), Place::gpu, 4096, Access::write, u.gpu);
    ASSERT_EQ(u.create(qid, q->sq_iova(), away.iova()), status::success);
    EXPECT_EQ(u.c->csts() & csts::fatal, 0u);
    q->submit(flush_command(1, 1));
    u.expect_fatal_until_reset();
  }
}

TEST(NvmeModel, ACommandThatCannotBeFetchedIsFatal) {
  Unreachable u(1);
  RawQueue* const q = u.c->queue(1, 16, 16);
  const Mapped away(u.c->interface().address_space(), Place::gpu, 4096, Access::read, u.gpu);
  ASSERT_EQ(u.create(1, away.iova(), q->cq_iova()), status::success);
  q->ring_value(1);
  u.expect_fatal_until_reset();
  EXPECT_EQ(u.c->status(set_queues_command(0, 1, 1)), status::command_sequence);
}

}  // namespace
}  // namespace doorbell::nvme
