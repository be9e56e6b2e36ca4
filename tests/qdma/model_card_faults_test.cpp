// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults of the software card, by itself.
#include "qdma/model_card_rig.hpp"

namespace doorbell::qdma {
namespace {

using namespace rig;

constexpr u32 kJobs = 200;

struct FaultCase {
  CardRig rig;
  std::shared_ptr<CardQueue> queue;
  std::vector<u8> host, original;
  explicit FaultCase(Fault f, double p = 0.3, const std::string& keys = "clock=counted,delay=1s")
      : rig(keys, only(f, p)), queue(rig.queue(0)), host(8192) {}
  /// Runs one sub-transfer of 8 KiB at the i-th place.
  void run(Direction d, u32 i, const std::function<void(const Job&)>& check) {
    Job job(queue, d, host.data(), kDdrBase + i * host.size(), host.size());
    job.limit_ns = 3'000'000'000;
    rig.run({&job});
    check(job);
  }
  /// The memory behind the queue's back.
  u8* card(u32 i) { return rig.card->memory().at(kDdrBase + i * host.size()); }
};

TEST(CardFaults, DropNeverEndsByItself) {
  FaultCase c(Fault::drop);
  u64 lost = 0;
  for (u32 i = 0; i < kJobs; ++i)
    c.run(kPut, i, [&](const Job& j) {
      if (j.error == ETIMEDOUT) ++lost;
      EXPECT_EQ(j.error == 0 ? 0 : ETIMEDOUT, j.error);
    });
  EXPECT_EQ(lost, c.rig.counted(Fault::drop));
  EXPECT_GT(lost, kJobs / 5);
  EXPECT_LT(lost, kJobs / 2);
}

TEST(CardFaults, DropWithoutADeadlineWaitsForStop) {
  FaultCase c(Fault::drop, 1, {});
  Job stuck(c.queue, kPut, c.host.data(), kDdrBase, c.host.size());
  c.rig.submit({&stuck});
  ASSERT_TRUE(eventually([&] { return c.rig.counted(Fault::drop) == 1; }));
  EXPECT_FALSE(stuck.over);
  c.rig.card->stop(*c.queue, {});
  EXPECT_TRUE(stuck.over);
  EXPECT_EQ(stuck.error, ENXIO);
}

TEST(CardFaults, DelayComesLate) {
  FaultCase c(Fault::delay);
  u64 late = 0;
  for (u32 i = 0; i < kJobs; ++i)
    c.run(kGet, i, [&](const Job& j) {
      EXPECT_EQ(j.error, 0);
      if (j.ns >= 1'000'000'000) ++late;
    });
  EXPECT_EQ(late, c.rig.counted(Fault::delay));
  EXPECT_GT(late, 0u);
}

TEST(CardFaults, ErrorEndsAtADescriptor) {
  FaultCase c(Fault::error);
  u64 failed = 0, after_a_page = 0;
  for (u32 i = 0; i < kJobs; ++i)
    c.run(kPut, i, [&](const Job& j) {
      if (j.error == 0) return;
      EXPECT_EQ(j.error, EIO);
      EXPECT_TRUE(j.moved == 0 || j.moved == 4096) << j.moved;
      ++failed;
      if (j.moved > 0) ++after_a_page;
    });
  EXPECT_EQ(failed, c.rig.counted(Fault::error));
  EXPECT_GT(after_a_page, 0u);
  EXPECT_LT(after_a_page, failed);
}

TEST(CardFaults, CorruptChangesAByteOfARead) {
  FaultCase c(Fault::corrupt);
  u64 bad = 0;
  for (u32 i = 0; i < kJobs; ++i) {
    c.run(kPut, i, [](const Job& j) { EXPECT_EQ(j.error, 0); });
    c.host = pattern_of(c.host.size(), i);
    std::memcpy(c.card(i), c.host.data(), c.host.size());
    c.run(kGet, i, [&](const Job& j) {
      EXPECT_EQ(j.error, 0);
      u64 differ = 0;
      for (u64 k = 0; k < c.host.size(); ++k) differ += c.host[k] != c.card(i)[k] ? 1 : 0;
      EXPECT_LE(differ, 1u);
      bad += differ;
    });
  }
  EXPECT_EQ(bad, c.rig.counted(Fault::corrupt));
  EXPECT_GT(bad, 0u);
}

TEST(CardFaults, MisplaceReadsAnotherPlace) {
  FaultCase c(Fault::misplace);
  for (u32 i = 0; i <= kJobs; ++i) std::memset(c.card(i), static_cast<int>(i % 251) + 1, c.host.size());
  u64 bad = 0;
  for (u32 i = 0; i < kJobs; ++i)
    c.run(kGet, i, [&](const Job& j) {
      EXPECT_EQ(j.error, 0);
      EXPECT_TRUE(std::all_of(c.host.begin(), c.host.end(), [&](u8 b) { return b == c.host[0]; }));
      if (c.host[0] != *c.card(i)) ++bad;
    });
  EXPECT_EQ(bad, c.rig.counted(Fault::misplace));
  EXPECT_GT(bad, 0u);
}

TEST(CardFaults, StaleWritesNothing) {
  FaultCase c(Fault::stale);
  u64 stale = 0;
  for (u32 i = 0; i < kJobs; ++i) {
    std::fill(c.host.begin(), c.host.end(), u8{0x77});
    c.run(kPut, i, [&](const Job& j) {
      EXPECT_EQ(j.error, 0);
      if (std::all_of(c.card(i), c.card(i) + c.host.size(), [](u8 b) { return b == 0; })) ++stale;
    });
  }
  EXPECT_EQ(stale, c.rig.counted(Fault::stale));
  EXPECT_GT(stale, 0u);
}

TEST(CardFaults, ReorderLetsYoungerOnesGoFirst) {
  FaultCase c(Fault::reorder, 0.3, "clock=counted,threads=1");
  std::atomic<u32> ends{0};
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<Job*> all;
  for (u32 i = 0; i < kJobs; ++i) {
    jobs.push_back(std::make_unique<Job>(c.queue, kGet, c.host.data(), kDdrBase, 4096));
    jobs.back()->ends = &ends;
    all.push_back(jobs.back().get());
  }
  c.rig.run(all);
  u64 overtaken = 0;
  u32 youngest = 0;
  for (auto it = jobs.rbegin(); it != jobs.rend(); ++it) {
    EXPECT_EQ((*it)->error, 0);
    if (it != jobs.rbegin() && (*it)->place > youngest) ++overtaken;
    youngest = it == jobs.rbegin() ? (*it)->place : std::min(youngest, (*it)->place);
  }
  EXPECT_GT(c.rig.counted(Fault::reorder), 0u);
  EXPECT_LE(overtaken, c.rig.counted(Fault::reorder));
  EXPECT_GT(overtaken, 0u);
}

TEST(CardFaults, RemovalTakesTheCardAwayOnce) {
  FaultCase c(Fault::removal, 0.05);
  u64 ok = 0, gone = 0;
  for (u32 i = 0; i < kJobs; ++i)
    c.run(kPut, i, [&](const Job& j) {
      if (j.error == 0) ++ok;
      else ++gone;
      EXPECT_TRUE(j.error == 0 ? gone == 0 : j.error == ENODEV);
    });
  EXPECT_GT(ok, 0u);
  EXPECT_GT(gone, 0u);
  EXPECT_EQ(c.rig.counted(Fault::removal), 1u);
  EXPECT_TRUE(c.rig.card->gone());
}

}  // namespace
}  // namespace doorbell::qdma
