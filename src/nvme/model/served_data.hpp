// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a kernel moves one command's data between the media and what its PRPs name: by the lanes of a group, or
// as a plan of one lane.
#pragma once

#include <doorbell/nvme/wire.hpp>
#include <doorbell/warp.hpp>

#include "model/copy_words.hpp"
#include "nvme/model/served_queues.hpp"
#include "nvme/model/transfer.hpp"

namespace doorbell::nvme {

/// A copy of one command's data: multiples of 16 bytes, at such addresses. No bytes: nothing to copy.
struct Move {
  u8* to;
  const u8* from;
  u32 bytes;
};

/// Sorted by IOVA.
struct RangeTable {
  const ServedRange* ranges;
  u32 count;

  /// The address of [iova, iova + bytes), if all of it is in one range that allows `want`; else null. `hint`:
  /// the range that was found last.
  [[nodiscard]] DOORBELL_INLINE u8* find(Iova iova, u64 bytes, Access want, u32& hint) const {
    if (hint >= count || iova < ranges[hint].begin || iova >= ranges[hint].end) {
      u32 low = 0, high = count;  // the answer, if there is one, is the last that begins at or before `iova`
      while (low < high) {
        const u32 middle = (low + high) / 2;
        if (ranges[middle].begin <= iova) low = middle + 1;
        else high = middle;
      }
      if (low == 0) return nullptr;
      hint = low - 1;
    }
    const ServedRange& r = ranges[hint];
    if (iova >= r.end || bytes > r.end - iova || !allows(r.access, want)) return nullptr;
    return r.base + (iova - r.begin);
  }
};

/// Memory of a server as run_command() sees it: it does not fail.
struct ServedData {
  const ServerJob& job;
  const RangeTable& ranges;
  const RecentWrites& recent;
  Outcome& outcome;  ///< DMA faults are counted in it
  u32 hint = 0;      ///< the range that was found last
  const NamespaceShape& shape = job.shape;

  [[nodiscard]] DOORBELL_INLINE bool keeps() const { return job.media != nullptr; }
  [[nodiscard]] DOORBELL_INLINE u8* blocks(u64 at, u64, bool) const { return job.media + at; }
  [[nodiscard]] DOORBELL_INLINE bool flush() const { return true; }
  [[nodiscard]] DOORBELL_INLINE bool lost() const { return false; }
  [[nodiscard]] DOORBELL_INLINE bool reaches(const u8*, u64, Access) const { return true; }
  [[nodiscard]] DOORBELL_INLINE u8* find(Iova iova, u64 bytes, Access want) {
    u8* const p = ranges.find(iova, bytes, want, hint);
    if (p == nullptr) ++outcome.dma_faults;
    return p;
  }
};

/// Plans a read or write whose data lies in one piece of one page. Of one lane.
struct PlannedData : ServedData {
  Move move{};
  bool unplanned = false;  ///< a group of lanes runs the command, and this run of it is void

  template <class Each>
  DOORBELL_INLINE u16 walk(const Sqe& e, u64 bytes, Access want, Each each) {
    unplanned = (e.prp1 & 15) != 0 || (e.prp1 & (kModelPage - 1)) + bytes > kModelPage;
    if (unplanned) return status::success;
    u8* const p = find(e.prp1, bytes, want);
    return p != nullptr && each(p, 0, bytes) ? status::success : status::data_transfer_error;
  }
  DOORBELL_INLINE bool give(u8* to, const u8* from, u64 n, u64 bad) {
    unplanned = bad < n;
    return take(to, from, n);
  }
  DOORBELL_INLINE bool take(u8* to, const u8* from, u64 n) {
    move = {to, from, static_cast<u32>(n)};
    return true;
  }
  DOORBELL_INLINE u16 compare(const Sqe&, u64, const u8*) {
    unplanned = true;
    return status::success;
  }
  DOORBELL_INLINE void zero(u8*, u64) { unplanned = true; }
};

/// Moves data by the lanes of `Group`, which make all calls together.
template <class Group>
struct GroupData : ServedData {
  // List entries fetched at a time: one a lane, or what one lane can keep.
  static constexpr u32 kListEntries = Group::size > 1 ? Group::size : 8;

  const Group& group;
  u32 part;  ///< of every `parts` pages this group moves the one at `part`; it looks at all of them
  u32 parts;

  template <class Each>
  DOORBELL_INLINE u16 walk(const Sqe& e, u64 bytes, Access want, Each each) {
    u64 at = 0;
    u32 page = 0;
    const auto list = [&](Iova from, u32 n, u64* out) {
      const auto* entries = reinterpret_cast<const u64*>(find(from, u64{n} * 8, Access::read));
      if (entries == nullptr) return false;
      if constexpr (Group::size > 1) {
        const u64 mine = group.lane() < n ? load64_relaxed(entries + group.lane()) : 0;
        for (u32 i = 0; i < n; ++i) out[i] = group.shfl(mine, i);
      } else {
        for (u32 i = 0; i < n; ++i) out[i] = load64_relaxed(entries + i);
      }
      return true;
    };
    return walk_prps<kListEntries>(e.prp1, e.prp2, bytes, kModelPage, list, [&](Iova iova, u64 n) {
      u8* const p = find(iova, n, want);
      if (p == nullptr) return false;
      if (page++ % parts == part) (void)each(p, at, n);
      at += n;
      return true;
    });
  }
  DOORBELL_INLINE bool give(u8* to, const u8* from, u64 n, u64 bad) {
    (void)take(to, from, n);
    if (bad >= n) return true;
    group.sync();  // the damage comes after the copy of another lane
    if (group.lane() == 0) to[bad] = from[bad] ^ model::InjectedFault::kDamage;
    return true;
  }
  DOORBELL_INLINE bool take(u8* to, const u8* from, u64 n) {
    model::copy_words(to, from, n, group.lane(), Group::size);
    return true;
  }
  DOORBELL_INLINE u16 compare(const Sqe& e, u64 bytes, const u8* media) {
    bool differs = false;
    const u16 st = walk(e, bytes, Access::read, [&](const u8* from, u64 at, u64 n) {
      for (u64 i = group.lane(); i < n; i += Group::size) differs = differs || from[i] != media[at + i];
      return true;
    });
    return group.ballot(differs) != 0 && st == status::success ? status::compare_failure : st;
  }
  DOORBELL_INLINE void zero(u8* media, u64 bytes) {
    const u64 step = u64{Group::size} * parts;
    for (u64 i = u64{part} * Group::size + group.lane(); i < bytes / sizeof(Word16); i += step)
      store16(reinterpret_cast<Word16*>(media) + i, Word16{{0, 0, 0, 0}});
  }
};

}  // namespace doorbell::nvme
