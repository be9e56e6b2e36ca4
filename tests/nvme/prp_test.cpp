// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// PRP lists: a controller reads from them what the driver wrote. With an invalid list the controller stops
// with a status and within bounded time.

#include <doorbell/nvme/wire.hpp>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace doorbell::nvme {
namespace {

constexpr u64 kData = u64{1} << 40;
constexpr u64 kList = u64{3} << 40;

struct Walk {
  u16 status = 0;
  u64 bytes = 0;  // handed to chunk, in order and without a gap
  u64 chunks = 0;
  u64 reads = 0;  // list fetches
};

/// Walks and requires the chunks to be [iova, iova + bytes) in order.
template <u32 Batch = 64>
Walk walk_list(u64 iova, u64 bytes, u64 page, const PrpPair& prp, const std::vector<u64>& list,
               u64 list_iova) {
  Walk w;
  w.status = walk_prps<Batch>(
      prp.prp1, prp.prp2, bytes, page,
      [&](u64 from, u32 n, u64* out) {
        ++w.reads;
        EXPECT_LE(n, Batch);
        EXPECT_EQ(from / page, (from + n * 8 - 1) / page) << "a fetch that crosses a page";
        if (from < list_iova || from + u64{n} * 8 > list_iova + list.size() * 8) return false;
        std::copy_n(list.data() + (from - list_iova) / 8, n, out);
        return true;
      },
      [&](u64 at, u64 n) {
        EXPECT_EQ(at, iova + w.bytes);
        EXPECT_GT(n, 0u);
        EXPECT_EQ(at / page, (at + n - 1) / page) << "a chunk that crosses a page";
        w.bytes += n;
        ++w.chunks;
        return true;
      });
  return w;
}

void round_trip(u64 offset, u64 bytes, u64 page) {
  SCOPED_TRACE(testing::Message() << "offset " << offset << " bytes " << bytes << " page " << page);
  const u64 iova = kData + offset;
  const PrpPair prp = prp_pair(iova, bytes, page, kList);
  ASSERT_EQ(prp.list_qwords, prp_list_qwords(offset, bytes, page));
  const u64 pages = (offset + bytes + page - 1) / page;
  ASSERT_EQ(prp.list_qwords == 0, pages <= 2);
  if (pages == 1) {
    ASSERT_EQ(prp.prp2, 0u);
  }
  constexpr u64 kGuard = 0x1122334455667788;
  std::vector<u64> list(prp.list_qwords + 1, kGuard);
  if (prp.list_qwords > 0) write_prp_list(list.data(), iova, bytes, page, kList);
  ASSERT_EQ(list.back(), kGuard) << "written past the announced size";
  list.pop_back();
  for (const u64 q : list) ASSERT_NE(q, kGuard) << "an entry that was not written";
  const Walk w = walk_list(iova, bytes, page, prp, list, kList);
  ASSERT_EQ(w.status, status::success);
  ASSERT_EQ(w.bytes, bytes);
  ASSERT_EQ(w.chunks, pages);
}

TEST(Prp, RoundTripAtTheEdges) {
  for (const u64 page : {u64{4096}, u64{8192}, u64{65536}}) {
    const u64 per_page = page / 8;
    for (const u64 entries : {u64{1}, u64{2}, u64{3}, per_page - 1, per_page, per_page + 1, 2 * per_page - 2,
                              2 * per_page - 1, 2 * per_page, 2 * per_page + 1}) {
      if (page == 65536 && entries > per_page + 1) continue;  // gigabytes; nothing new
      round_trip(0, (entries + 1) * page, page);
      round_trip(0, (entries + 1) * page - 4, page);
      round_trip(0, entries * page + 4, page);
      round_trip(4, (entries + 1) * page - 4, page);
      round_trip(page - 4, entries * page + 4, page);
      round_trip(512, (entries + 1) * page - 512, page);
    }
  }
  for (const u64 entries :
       {u64{511}, u64{512}, u64{513}, u64{1022}, u64{1023}, u64{1024}, u64{1534}, u64{1535}})
    round_trip(0, (entries + 1) * 4096, 4096);
}

TEST(Prp, RoundTripAtRandom) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const u64 page = u64{4096} << (random() % 3);
    const u64 offset = random() % page & ~u64{3};
    const u64 scale = u64{1} << (random() % 23);
    round_trip(offset, (random() % scale + 1 + 3) & ~u64{3}, page);
  }
}

TEST(Prp, OtherFetchSizesSeeTheSame) {
  const u64 bytes = 1500 * 4096;
  const PrpPair prp = prp_pair(kData, bytes, 4096, kList);
  std::vector<u64> list(prp.list_qwords);
  write_prp_list(list.data(), kData, bytes, 4096, kList);
  EXPECT_EQ(walk_list<1>(kData, bytes, 4096, prp, list, kList).bytes, bytes);
  EXPECT_EQ(walk_list<7>(kData, bytes, 4096, prp, list, kList).bytes, bytes);
  EXPECT_EQ(walk_list<512>(kData, bytes, 4096, prp, list, kList).bytes, bytes);
}

/// A list pointer may have an offset in its page; the list then runs to the end of that page only.
TEST(Prp, AListMayBeginInsideItsPage) {
  for (const u64 skip : {u64{1}, u64{500}, u64{510}, u64{511}}) {
    const u64 entries = 600;
    const u64 bytes = (entries + 1) * 4096;
    std::vector<u64> list(2048, 0);
    u64 data = kData + 4096, left = entries, at = skip;
    while (left > 0) {
      const u64 here = 512 - at % 512;
      const bool chained = left > here;
      for (u64 i = 0; i < (chained ? here - 1 : left); ++i, data += 4096) list[at + i] = data;
      if (!chained) break;
      left -= here - 1;
      at += here - 1;
      list[at] = kList + (at + 1) * 8;
      ++at;
    }
    const Walk w = walk_list(kData, bytes, 4096, {kData, kList + skip * 8, 0}, list, kList);
    EXPECT_EQ(w.status, status::success) << skip;
    EXPECT_EQ(w.bytes, bytes);
  }
}

struct Memory {
  std::map<u64, u64> qwords;  // list memory that exists
  u64 fetches = 0;
  u16 walk(u64 prp1, u64 prp2, u64 bytes, u64 page = 4096, u64* reached = nullptr) {
    u64 sum = 0;
    const u16 st = walk_prps(
        prp1, prp2, bytes, page,
        [&](u64 from, u32 n, u64* out) {
          fetches += n;
          for (u32 i = 0; i < n; ++i) {
            const auto it = qwords.find(from + i * 8);
            if (it == qwords.end()) return false;
            out[i] = it->second;
          }
          return true;
        },
        [&](u64 at, u64 n) {
          sum += n;
          return at < (u64{1} << 60);  // above lies nothing
        });
    if (reached != nullptr) *reached = sum;
    return st;
  }
};

TEST(Prp, BadOffsets) {
  Memory m;
  for (u64 low : {u64{1}, u64{2}, u64{3}}) EXPECT_EQ(m.walk(kData + low, 0, 512), status::prp_offset_invalid);
  EXPECT_EQ(m.walk(kData, kData + 4096 + 4, 8192), status::prp_offset_invalid);
  EXPECT_EQ(m.walk(kData, kData + 4096 + 2048, 4096 + 512), status::prp_offset_invalid);
  for (u64 low = 1; low < 8; ++low)
    EXPECT_EQ(m.walk(kData, kList + low, 3 * 4096), status::prp_offset_invalid);
  m.qwords[kList] = kData + 4096;
  m.qwords[kList + 8] = kData + 8192 + 512;
  EXPECT_EQ(m.walk(kData, kList, 3 * 4096), status::prp_offset_invalid);
  // PRP2 is not looked at when PRP1 is enough.
  EXPECT_EQ(m.walk(kData, ~u64{0}, 4096), status::success);
}

TEST(Prp, UnreachableMemory) {
  Memory m;
  EXPECT_EQ(m.walk(u64{1} << 60, 0, 512), status::data_transfer_error);
  EXPECT_EQ(m.walk(kData, u64{1} << 60, 8192), status::data_transfer_error);
  EXPECT_EQ(m.walk(kData, kList, 3 * 4096), status::data_transfer_error);  // no list there
  m.qwords[kList] = kData + 4096;
  EXPECT_EQ(m.walk(kData, kList, 3 * 4096), status::data_transfer_error);  // half a list
  m.qwords[kList + 8] = u64{1} << 60;
  EXPECT_EQ(m.walk(kData, kList, 3 * 4096), status::data_transfer_error);  // an entry that leads nowhere
}

TEST(Prp, ChainPointersAreChecked) {
  Memory m;
  for (u64 i = 0; i < 512; ++i) m.qwords[kList + i * 8] = kData + (i + 1) * 4096;
  const u64 bytes = 514 * 4096;  // 513 entries: the last qword of the page is a pointer
  m.qwords[kList + 511 * 8] = kList + 4096 + 8;
  EXPECT_EQ(m.walk(kData, kList, bytes), status::prp_offset_invalid);
  m.qwords[kList + 511 * 8] = u64{7} << 50;
  EXPECT_EQ(m.walk(kData, kList, bytes), status::data_transfer_error);
  m.qwords[kList + 511 * 8] = 0;
  EXPECT_EQ(m.walk(kData, kList, bytes), status::data_transfer_error);
}

TEST(Prp, AListThatChainsToItselfEnds) {
  Memory m;
  for (u64 i = 0; i < 511; ++i) m.qwords[kList + i * 8] = kData;
  m.qwords[kList + 511 * 8] = kList;
  u64 reached = 0;
  const u64 bytes = 65536 * 4096;  // the largest transfer that a command can name
  EXPECT_EQ(m.walk(kData, kList, bytes, 4096, &reached), status::success);
  EXPECT_EQ(reached, bytes);
  EXPECT_LT(m.fetches, 65536u + 200);
  // Entered at its last qword, every round is the pointer alone first.
  m.fetches = 0;
  EXPECT_EQ(m.walk(kData, kList + 511 * 8, bytes, 4096, &reached), status::success);
  EXPECT_EQ(reached, bytes);
  EXPECT_LT(m.fetches, 65536u + 200);
}

TEST(Prp, RandomListsEndWithAStatus) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 3000; ++round) {
    u64 fetches = 0, chunks = 0;
    const u64 bytes = (random() % 2048 + 1) * 4096;
    const u16 st = walk_prps(
        random() & ~u64{3}, random() % 2 == 0 ? random() & ~u64{7} : random(), bytes, 4096,
        [&](u64, u32 n, u64* out) {
          fetches += n;
          for (u32 i = 0; i < n; ++i) out[i] = random() % 50 == 0 ? random() : random() & ~u64{4095};
          return random() % 100 != 0;
        },
        [&](u64, u64) {
          ++chunks;
          return random() % 1000 != 0;
        });
    EXPECT_TRUE(st == status::success || st == status::prp_offset_invalid ||
                st == status::data_transfer_error);
    EXPECT_LE(chunks, 2049u);
    EXPECT_LE(fetches, 2048u + 64 + 10);
  }
}

}  // namespace
}  // namespace doorbell::nvme
