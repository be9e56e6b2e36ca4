// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software card by itself: memory, rings, rates, faults. Where a figure depends on time the card counts
// its own.

#include "qdma/model/model_card.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>

#include "qdma/model_card_rig.hpp"

namespace doorbell::qdma {
namespace {

using namespace rig;

u64 resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  u64 all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<u64>(sysconf(_SC_PAGESIZE));
}

// --- memory ---

TEST(CardMemoryTest, RegionsAndHoles) {
  const auto reaches = [](Direction d, u64 address, u64 bytes) {
    return CardMemory::reaches(d, address, bytes, 0);
  };
  for (const Direction d : {kPut, kGet}) {
    EXPECT_TRUE(reaches(d, kHbmBase, kHbmBytes));
    EXPECT_TRUE(reaches(d, kHbmBoundary - 1, 2));
    EXPECT_TRUE(reaches(d, kDdrBase, kDdrBytes));
    EXPECT_FALSE(reaches(d, kHbmBase - 1, 1));
    EXPECT_FALSE(reaches(d, kHbmBase - 1, 2));
    EXPECT_FALSE(reaches(d, kHbmBase + kHbmBytes - 1, 2));
    EXPECT_FALSE(reaches(d, kHbmBase + kHbmBytes, 1));
    EXPECT_FALSE(reaches(d, kDdrBase + kDdrBytes - 4096, 4097));
    EXPECT_FALSE(reaches(d, 0, 1));
    EXPECT_FALSE(reaches(d, ~u64{0}, 1));
    EXPECT_FALSE(reaches(d, kDdrBase, ~u64{0}));
  }
  EXPECT_TRUE(reaches(kPut, kPdiBase, kPdiBytes));
  EXPECT_FALSE(reaches(kPut, kPdiBase, kPdiBytes + 1));
  EXPECT_FALSE(reaches(kGet, kPdiBase, 4));
}

TEST(CardMemoryTest, AnApertureIsReachedAsAWhole) {
  EXPECT_TRUE(CardMemory::reaches(kPut, kPdiBase, kMiB, 4096));
  EXPECT_FALSE(CardMemory::reaches(kPut, kPdiBase, kMiB, 0));
  // Half of the window is a hole: what does not wrap is allowed.
  EXPECT_TRUE(CardMemory::reaches(kPut, kPdiBase, 4096, 1 << 21));
  EXPECT_FALSE(CardMemory::reaches(kPut, kPdiBase, 4 << 20, 1 << 21));
}

TEST(CardMemoryTest, EveryQueueSeesTheSameBytes) {
  CardRig rig;
  const auto a = rig.queue(0), b = rig.queue(1);
  for (const u64 address :
       {kDdrBase, kHbmBase + 12345, kHbmBoundary - 4097, kDdrBase + kDdrBytes - 3 * kMiB - 5}) {
    std::vector<u8> sent = pattern_of(3 * kMiB + 5, address), got(sent.size());
    rig.run_one(a, kPut, sent, address);
    rig.run_one(b, kGet, got, address);
    EXPECT_TRUE(sent == got) << address;
  }
}

TEST(CardMemoryTest, SingleBytesAndPageCrossings) {
  CardRig rig;
  const auto q = rig.queue(0);
  std::vector<u8> area = pattern_of(3 * 4096, 1);
  rig.run_one(q, kPut, area, kDdrBase);
  const std::pair<u64, u64> cases[] = {{0, 1}, {4095, 1}, {4095, 2}, {4096, 4096}, {1, 8190}, {8191, 3}};
  for (const auto& [offset, bytes] : cases) {
    std::vector<u8> part = pattern_of(bytes, offset + 99);
    std::copy(part.begin(), part.end(), area.begin() + static_cast<std::ptrdiff_t>(offset));
    rig.run_one(q, kPut, part, kDdrBase + offset);
    std::vector<u8> got(area.size());
    rig.run_one(q, kGet, got, kDdrBase);
    EXPECT_TRUE(got == area) << offset << " " << bytes;  // and nothing outside the range has changed
  }
}

TEST(CardMemoryTest, AddressesWrapInTheAperture) {
  CardRig rig;
  const auto linear = rig.queue(0), keyhole = rig.queue(1, {.aperture = 4096});
  std::vector<u8> sent = pattern_of(10'000, 3), want(4096, 0), got(3 * 4096);
  for (u64 i = 0; i < sent.size(); ++i) want[(100 + i) % 4096] = sent[i];
  rig.run_one(keyhole, kPut, sent, kDdrBase + 4096 + 100);
  rig.run_one(linear, kGet, got, kDdrBase);
  EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin() + 4096));
  EXPECT_TRUE(std::all_of(got.begin(), got.begin() + 4096, [](u8 b) { return b == 0; }));
  EXPECT_TRUE(std::all_of(got.begin() + 8192, got.end(), [](u8 b) { return b == 0; }));
  std::vector<u8> image = pattern_of(kMiB, 4);
  rig.run_one(keyhole, kPut, image, kPdiBase);
  EXPECT_EQ(counters_of(*rig.card)["image_bytes"], kMiB);
}

TEST(CardMemoryTest, MemoryUseFollowsWhatIsWritten) {
  CardRig rig;
  const auto q = rig.queue(0);
  const u64 before = resident_bytes();
  const auto address_of = [](u64 i) {
    return (i < 32 ? kHbmBase + (i << 30) : kDdrBase + ((i - 32) << 30)) + i * 8192 + 17;
  };
  for (u64 i = 0; i < 64; ++i) {
    std::vector<u8> mark = pattern_of(100, i);
    rig.run_one(q, kPut, mark, address_of(i));
  }
  // 64 pages are 256 KiB; a sanitizer keeps shadow pages of its own for each.
  EXPECT_LT(resident_bytes() - std::min(before, resident_bytes()), 64 * kMiB);
  for (u64 i = 0; i < 64; ++i) {
    std::vector<u8> got(100);
    rig.run_one(q, kGet, got, address_of(i));
    EXPECT_TRUE(got == pattern_of(100, i)) << i;
  }
}

// --- rings ---

TEST(CardRings, AQueueIsFirstInFirstOut) {
  // With more threads their reports, not the moves, may overtake each other.
  CardRig rig("threads=1");
  const auto q = rig.queue(0);
  std::atomic<u32> ends{0};
  std::vector<std::vector<u8>> data;
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<Job*> all;
  for (u32 i = 0; i < 40; ++i) data.push_back(pattern_of(i % 3 == 0 ? 2 * kMiB : 5000, i));
  for (u32 i = 0; i < 40; ++i) {
    jobs.push_back(std::make_unique<Job>(q, kPut, data[i].data(), kDdrBase, data[i].size()));
    jobs.back()->ends = &ends;
    all.push_back(jobs.back().get());
  }
  rig.run(all);
  for (u32 i = 0; i < 40; ++i) EXPECT_EQ(jobs[i]->place, i);
  std::vector<u8> got(data.back().size());
  rig.run_one(q, kGet, got, kDdrBase);
  EXPECT_TRUE(got == data.back());
}

TEST(CardRings, TheLastWriteOfAQueueIsTheOneThatStays) {
  CardRig rig("threads=4");
  const auto q = rig.queue(0);
  std::vector<std::vector<u8>> data;
  std::vector<std::unique_ptr<Job>> jobs;
  std::vector<Job*> all;
  for (u32 i = 0; i < 60; ++i) data.push_back(pattern_of(100'000, i));
  for (u32 i = 0; i < 60; ++i) {
    jobs.push_back(std::make_unique<Job>(q, kPut, data[i].data(), kDdrBase, data[i].size()));
    all.push_back(jobs.back().get());
  }
  rig.run(all);
  std::vector<u8> got(data.back().size());
  rig.run_one(q, kGet, got, kDdrBase);
  EXPECT_TRUE(got == data.back());
}

TEST(CardRings, RequestsAreFedInPiecesOfTheRing) {
  // 64 descriptors of 4 KiB: each piece of 256 KiB waits for the latency of the one before.
  std::vector<u8> host(kMiB);
  CardRig rig("clock=counted,latency=10us");
  const auto small = rig.queue(0, {.h2c_ring = 1, .c2h_ring = 15});
  EXPECT_EQ(rig.run_one(small, kPut, host, kDdrBase), 40'000u);
  EXPECT_EQ(rig.run_one(small, kGet, host, kDdrBase), 10'000u);
}

TEST(CardRings, StopEndsWhatIsQueuedAndMoving) {
  CardRig rig("bandwidth=1M");  // a minute for each
  const auto q = rig.queue(0), other = rig.queue(1);
  std::vector<u8> host(64 * kMiB), one(1);
  Job first(q, kPut, host.data(), kDdrBase, host.size()), second(q, kPut, host.data(), kDdrBase, host.size()),
      reading(q, kGet, host.data(), kDdrBase, host.size());
  rig.submit({&first, &second});
  ASSERT_TRUE(eventually([&] { return rig.card->bytes_moved() > 0; }));
  EXPECT_FALSE(first.over);
  rig.submit({&reading});
  std::atomic<bool> quiet{false};
  rig.card->stop(*q, [&] { quiet = true; });
  ASSERT_TRUE(eventually([&] { return quiet.load(); }));
  for (const Job* j : {&first, &second, &reading}) {
    EXPECT_TRUE(j->over);
    EXPECT_EQ(j->error, ENXIO);
    EXPECT_LT(j->moved, j->bytes);
  }
  EXPECT_GT(first.moved, 0u);
  EXPECT_EQ(second.moved, 0u);
  EXPECT_EQ(counters_of(*rig.card)["drained"], 3);
  // Stopped, the queue takes nothing; started again, it does, and the other one never noticed.
  Job late(q, kPut, one.data(), kDdrBase, 1);
  rig.run({&late});
  EXPECT_EQ(late.error, ENXIO);
  rig.card->start(*q);
  Job again(q, kGet, one.data(), kDdrBase, 1), independent(other, kPut, one.data(), kDdrBase, 1);
  rig.run({&independent});
  EXPECT_EQ(independent.error, 0);
  rig.run({&again});
  EXPECT_EQ(again.error, 0);
}

/// However many rings are at work: what overlaps counts once, in each direction by itself.
TEST(CardRings, TimeUnderWayIsCountedOnce) {
  CardRig rig("bandwidth=100M,clock=counted,latency=1ms");
  const auto a = rig.queue(0), b = rig.queue(1), c = rig.queue(2);
  std::vector<u8> host(kMiB);
  const auto put = [&](const auto& q) { return Job(q, kPut, host.data(), kDdrBase, host.size()); };
  Job first = put(a), behind = put(a), beside = put(b), third = put(c);
  // Three of them share channel 0.
  const u64 took = rig.run({&first, &behind, &beside, &third});
  const auto active = [&](const char* way) { return counters_of(*rig.card)["active_ns"][way].get<u64>(); };
  EXPECT_NEAR(static_cast<double>(took), 3.0 * kMiB * 10 + 1e6, 2e3);
  EXPECT_NEAR(static_cast<double>(active("host_to_card")), static_cast<double>(took), 2e3);
  EXPECT_EQ(active("card_to_host"), 0u);
  const u64 puts = active("host_to_card");
  rig.run_one(a, kGet, host, kDdrBase);
  EXPECT_EQ(active("host_to_card"), puts);
  EXPECT_NEAR(static_cast<double>(active("card_to_host")), 1.0 * kMiB * 10 + 1e6, 2e3);
}

TEST(CardRings, DeadlineAndCancelSayHowFarItCame) {
  CardRig rig("bandwidth=100M,clock=counted");
  const auto q = rig.queue(0);
  std::vector<u8> host(16 * kMiB);
  Job late(q, kPut, host.data(), kDdrBase, host.size());
  late.limit_ns = 50'000'000;  // of the 168 ms that it takes
  rig.run({&late});
  EXPECT_EQ(late.error, ETIMEDOUT);
  EXPECT_NEAR(static_cast<double>(late.moved), 5e6, 200e3);
  EXPECT_EQ(late.ns, 50'000'000u);

  CardRig slow("bandwidth=1M");
  const auto s = slow.queue(0);
  Job cancelled(s, kPut, host.data(), kDdrBase, host.size()), waits(s, kPut, host.data(), kDdrBase, 1);
  slow.submit({&cancelled, &waits});
  ASSERT_TRUE(eventually([&] { return slow.card->bytes_moved() > 0; }));
  slow.card->abandon(waits, ECANCELED);
  slow.card->abandon(cancelled, ECANCELED);
  ASSERT_TRUE(eventually([&] { return cancelled.over && waits.over; }));
  EXPECT_EQ(cancelled.error, ECANCELED);
  EXPECT_EQ(waits.error, ECANCELED);
  EXPECT_GT(cancelled.moved, 0u);
  EXPECT_EQ(waits.moved, 0u);
  EXPECT_EQ(counters_of(*slow.card)["cancelled"], 2);
  slow.card->abandon(cancelled, EIO);  // it has ended: nothing happens
  EXPECT_EQ(cancelled.error, ECANCELED);
}

TEST(CardRings, WithoutTheCardEverythingEnds) {
  CardRig rig("bandwidth=1M");
  const auto q = rig.queue(0);
  std::vector<u8> host(8 * kMiB);
  Job put(q, kPut, host.data(), kDdrBase, host.size()), get(q, kGet, host.data(), kDdrBase, host.size());
  rig.submit({&put, &get});
  rig.card->remove();
  ASSERT_TRUE(eventually([&] { return put.over && get.over; }));
  Job late(q, kPut, host.data(), kDdrBase, 1);
  rig.run({&late});
  for (const Job* j : {&put, &get, &late}) EXPECT_EQ(j->error, ENODEV);
  auto gone = std::make_unique<Job>(q, kPut, host.data(), kDdrBase, host.size());
  {
    CardRig destroyed("bandwidth=1M");
    gone->queue = destroyed.queue(0);
    destroyed.submit({gone.get()});
  }
  EXPECT_TRUE(gone->over);
  EXPECT_EQ(gone->error, ENODEV);
}

// --- rates, by the card's own clock ---

struct Rates {
  explicit Rates(const std::string& keys) : rig("clock=counted," + keys), host(8 * kMiB) {
    for (u32 i = 0; i < 4; ++i) queues.push_back(rig.queue(i));
  }
  /// Each of `parts` is an 8 MiB sub-transfer; all are submitted at once.
  struct Part {
    u32 queue;
    Direction direction;
    u64 address;
  };
  double gb_per_s(const std::vector<Part>& parts) {
    std::vector<std::unique_ptr<Job>> jobs;
    std::vector<Job*> all;
    for (const Part& p : parts) {
      jobs.push_back(std::make_unique<Job>(queues[p.queue], p.direction, host.data(), p.address, 8 * kMiB));
      all.push_back(jobs.back().get());
    }
    const u64 ns = rig.run(all);
    for (const auto& j : jobs) EXPECT_EQ(j->error, 0);
    return static_cast<double>(parts.size() * 8 * kMiB) / static_cast<double>(ns);
  }
  CardRig rig;
  std::vector<std::shared_ptr<CardQueue>> queues;
  std::vector<u8> host;
};

TEST(CardRatesTest, ChannelsAndDirectionsHaveTheirOwn) {
  Rates r("bandwidth=12G");
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}}), 12, 0.01);
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}, {1, kPut, kDdrBase + 64 * kMiB}}), 24, 0.01);
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}, {0, kGet, kDdrBase + 64 * kMiB}}), 24, 0.01);
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}, {1, kGet, kDdrBase + 64 * kMiB}}), 24, 0.01);
  // Queues 0 and 2 are both of channel 0.
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}, {2, kPut, kDdrBase + 64 * kMiB}}), 12, 0.01);
}

TEST(CardRatesTest, TheLinkIsSharedByTheChannels) {
  Rates r("bandwidth=12G,link=18G");
  EXPECT_NEAR(r.gb_per_s({{0, kGet, kDdrBase}}), 12, 0.1);
  EXPECT_NEAR(r.gb_per_s({{0, kGet, kDdrBase}, {1, kGet, kDdrBase}}), 18, 0.1);
  EXPECT_NEAR(r.gb_per_s({{0, kPut, kDdrBase}, {1, kGet, kHbmBase}}), 24, 0.1);
}

TEST(CardRatesTest, HalfDuplexSharesTheDirections) {
  Rates half("bandwidth=12G,duplex=0.5");
  EXPECT_NEAR(half.gb_per_s({{0, kPut, kDdrBase}, {1, kPut, kDdrBase}}), 24, 0.1);
  EXPECT_NEAR(
      half.gb_per_s({{0, kPut, kDdrBase}, {1, kGet, kHbmBase}, {1, kPut, kDdrBase}, {0, kGet, kHbmBase}}), 24,
      0.2);
  Rates full("bandwidth=12G");
  EXPECT_NEAR(
      full.gb_per_s({{0, kPut, kDdrBase}, {1, kGet, kHbmBase}, {1, kPut, kDdrBase}, {0, kGet, kHbmBase}}), 48,
      0.2);
}

TEST(CardRatesTest, PublishedFigures) {
  Rates r("preset=v80");
  const auto both = [&](Direction d, u64 a, u64 b) { return r.gb_per_s({{0, d, a}, {1, d, b}}); };
  const u64 low = kHbmBase, low2 = kHbmBase + 512 * kMiB, high = kHbmBoundary;
  EXPECT_NEAR(both(kGet, kDdrBase, kDdrBase + kMiB), 23, 0.3);
  EXPECT_NEAR(both(kPut, kDdrBase, kDdrBase + kMiB), 23, 0.3);
  EXPECT_NEAR(both(kPut, low, low2), 23, 0.3);
  EXPECT_NEAR(both(kGet, low, low2), 12, 0.3);
  EXPECT_NEAR(both(kGet, low, high), 23, 0.3);
  EXPECT_NEAR(both(kPut, kDdrBase, low), 23, 0.3);
}

TEST(CardRatesTest, ARealCardIsNoFasterThanItsRate) {
  CardRig rig("bandwidth=200M");
  const auto q = rig.queue(0);
  std::vector<u8> host(4 * kMiB);
  const u64 begin = wall_ns();
  const u64 ns = rig.run_one(q, kPut, host, kDdrBase);
  EXPECT_GE(wall_ns() - begin, 20'900'000u);
  EXPECT_GE(ns, 20'900'000u);
}

// --- keys ---

TEST(CardSpec, RefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(is_model("model"));
  EXPECT_TRUE(is_model("model:link=1G"));
  EXPECT_FALSE(is_model("modelx"));
  const auto error = [](const std::string& spec) {
    return test::error_of([&] { static_cast<void>(make_model_card(spec)); });
  };
  EXPECT_NE(error("model:bandwith=1G").find("bandwidth"), std::string::npos);
  EXPECT_NE(error("model:duplex=0.4").find("0.5"), std::string::npos);
  EXPECT_NE(error("model:duplex=0.5").find("give link or bandwidth"), std::string::npos);
  EXPECT_EQ(error("model:duplex=0.5,link=20G"), "no error");
  EXPECT_NE(test::error_of([] { CardRig rig({}, only(Fault::duplicate, 1)); }).find("returns once"),
            std::string::npos);
}

}  // namespace
}  // namespace doorbell::qdma
