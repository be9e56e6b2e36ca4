// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One command's data, moved between the media and what its PRPs name, inside a kernel.
#pragma once

#include <doorbell/nvme/prp.hpp>
#include <doorbell/warp.hpp>

#include "model/copy_words.hpp"
#include "nvme/model/recent_writes.hpp"
#include "nvme/model/served_queues.hpp"

namespace doorbell::nvme {

/// The outcome of one command.
struct Outcome {
  enum class Kind : u32 { none, read, write, other };
  u16 status = status::success;
  bool happened = false;  ///< the injected fault was carried out, and counts
  bool stored = false;    ///< a write's blocks are in the media
  Kind kind = Kind::none;
  u32 dma_faults = 0;
  u64 bytes = 0;
  model::InjectedFault injected;
};

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
  [[nodiscard]] DOORBELL_HD u8* find(Iova iova, u64 bytes, Access want, u32& hint) const {
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

/// `Group`: the lanes that move the data together, and that call run() together.
template <class Group>
class Transfer {
 public:
  /// Of every `parts` pages this group moves the one at `part`; it looks at all of them.
  DOORBELL_INLINE Transfer(const Group& group, const ServerJob& job, const RangeTable& ranges,
                           const RecentWrites& recent, u32 part, u32 parts)
      : group_(group), job_(job), ranges_(ranges), recent_(recent), part_(part), parts_(parts) {}

  /// Plans a read or write whose data lies in one piece of one page, and what moves no data at all: fills
  /// `o`, and `move`. False for anything else, which run() does. Of one lane.
  [[nodiscard]] DOORBELL_HD bool plan(const Sqe& e, Outcome& o, Move& move) {
    const auto op = static_cast<IoOpcode>(e.opcode);
    const bool reads = op == IoOpcode::read;
    if ((!reads && op != IoOpcode::write) || o.injected.fault == model::Fault::corrupt) return false;
    const CheckedCommand c = check_command(e, job_.shape);
    const bool one_piece = (e.prp1 & 15) == 0 && (e.prp1 & (kModelPage - 1)) + c.bytes <= kModelPage;
    if (c.status == status::success && !one_piece) return false;
    o.status = c.status;
    if (c.status != status::success) return true;
    o.kind = reads ? Outcome::Kind::read : Outcome::Kind::write;
    if (o.injected.fault == model::Fault::stale) {
      o.happened = true;
      return true;
    }
    u64 lba = c.lba;
    if (o.injected.fault == model::Fault::misplace) {
      lba = recent_.other(lba, c.blocks, job_.shape.blocks);
      o.happened = lba != c.lba;
    }
    o.bytes = c.bytes;
    u8* const media = job_.media + lba * job_.shape.lba_bytes;
    u8* const data = ranges_.find(e.prp1, c.bytes, reads ? Access::write : Access::read, hint_);
    if (data == nullptr) {
      ++o.dma_faults;
      o.status = status::data_transfer_error;
      return true;
    }
    o.stored = !reads;
    move =
        reads ? Move{data, media, static_cast<u32>(c.bytes)} : Move{media, data, static_cast<u32>(c.bytes)};
    return true;
  }

  /// Fills everything of `o` but `injected`, which is a fault of the data or none.
  DOORBELL_HD void run(const Sqe& e, Outcome& o) {
    const CheckedCommand c = check_command(e, job_.shape);
    o.status = c.status;
    if (c.status != status::success) return;
    const auto op = static_cast<IoOpcode>(e.opcode);
    const bool keeps = job_.media != nullptr;
    o.kind = op == IoOpcode::read                                           ? Outcome::Kind::read
             : op == IoOpcode::write || (op == IoOpcode::compare && !keeps) ? Outcome::Kind::write
                                                                            : Outcome::Kind::other;
    if (!c.transfers) return;  // a flush: memory has nothing to flush
    if (op == IoOpcode::write_zeroes) {
      if (keeps) zero(c);
      return;
    }
    if (!keeps) {
      const Access want = op == IoOpcode::read ? Access::write : Access::read;
      o.status = walk(e, c, o, want, [](u8*, u64, u64) {});
      return;
    }
    switch (op) {
      case IoOpcode::read:
        read(e, c, o);
        break;
      case IoOpcode::write:
        if (o.injected.fault == model::Fault::stale) {
          o.happened = true;
          return;
        }
        o.status = walk(e, c, o, Access::read, [&](u8* from, u64 at, u64 n) {
          copy(job_.media + c.lba * job_.shape.lba_bytes + at, from, n);
        });
        o.stored = o.status == status::success;
        break;
      default:
        compare(e, c, o);
    }
    o.bytes = c.bytes;
  }

 private:
  // List entries fetched at a time: one a lane, or what one lane can keep.
  static constexpr u32 kListEntries = Group::size > 1 ? Group::size : 8;

  DOORBELL_INLINE void copy(u8* to, const u8* from, u64 n) {
    model::copy_words(to, from, n, group_.lane(), Group::size);
  }

  /// Calls move(address, offset, bytes) for each page that is this group's.
  template <class Move>
  DOORBELL_INLINE u16 walk(const Sqe& e, const CheckedCommand& c, Outcome& o, Access want, Move move) {
    u64 at = 0;
    u32 page = 0;
    const auto list = [&](Iova from, u32 n, u64* out) {
      const u8* p = ranges_.find(from, u64{n} * 8, Access::read, hint_);
      if (p == nullptr) {
        ++o.dma_faults;
        return false;
      }
      const auto* entries = reinterpret_cast<const u64*>(p);
      if constexpr (Group::size > 1) {
        const u64 mine = group_.lane() < n ? load64_relaxed(entries + group_.lane()) : 0;
        for (u32 i = 0; i < n; ++i) out[i] = group_.shfl(mine, i);
      } else {
        for (u32 i = 0; i < n; ++i) out[i] = load64_relaxed(entries + i);
      }
      return true;
    };
    return walk_prps<kListEntries>(e.prp1, e.prp2, c.bytes, kModelPage, list, [&](Iova iova, u64 n) {
      u8* const p = ranges_.find(iova, n, want, hint_);
      if (p == nullptr) {
        ++o.dma_faults;
        return false;
      }
      if (page++ % parts_ == part_) move(p, at, n);
      at += n;
      return true;
    });
  }

  DOORBELL_INLINE void read(const Sqe& e, const CheckedCommand& c, Outcome& o) {
    u64 lba = c.lba;
    if (o.injected.fault == model::Fault::misplace) {
      lba = recent_.other(lba, c.blocks, job_.shape.blocks);
      o.happened = lba != c.lba;
    }
    const u8* const media = job_.media + lba * job_.shape.lba_bytes;
    const bool damage = o.injected.fault == model::Fault::corrupt;
    const u64 bad = damage ? o.injected.position(c.bytes) : c.bytes;
    o.status = walk(e, c, o, Access::write, [&](u8* to, u64 at, u64 n) {
      copy(to, media + at, n);
      if (!damage || bad < at || bad - at >= n) return;
      group_.sync();  // the damage comes after the copy of another lane
      if (group_.lane() == 0) to[bad - at] = media[bad] ^ model::InjectedFault::kDamage;
    });
    if (damage) o.happened = o.status == status::success;
  }

  DOORBELL_INLINE void compare(const Sqe& e, const CheckedCommand& c, Outcome& o) {
    const u8* const media = job_.media + c.lba * job_.shape.lba_bytes;
    bool differs = false;
    o.status = walk(e, c, o, Access::read, [&](const u8* from, u64 at, u64 n) {
      for (u64 i = group_.lane(); i < n; i += Group::size) differs = differs || from[i] != media[at + i];
    });
    if (group_.ballot(differs) != 0 && o.status == status::success) o.status = status::compare_failure;
  }

  DOORBELL_INLINE void zero(const CheckedCommand& c) {
    u8* const media = job_.media + c.lba * job_.shape.lba_bytes;
    const u64 step = u64{Group::size} * parts_;
    for (u64 i = u64{part_} * Group::size + group_.lane(); i < c.bytes / sizeof(Word16); i += step)
      store16(reinterpret_cast<Word16*>(media) + i, Word16{{0, 0, 0, 0}});
  }

  const Group& group_;
  const ServerJob& job_;
  const RangeTable& ranges_;
  const RecentWrites& recent_;
  u32 part_;
  u32 parts_;
  u32 hint_ = 0;  ///< the range that was found last
};

}  // namespace doorbell::nvme
