// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One command from its fault to the outcome that its completion reports: the same for a thread of the CPU
// (io_engine.cpp) and inside a kernel (served_data.hpp).
#pragma once

#include <doorbell/address_space.hpp>

#include "nvme/model/cids.hpp"
#include "nvme/model/commands.hpp"
#include "nvme/model/recent_writes.hpp"

namespace doorbell::nvme {

/// The outcome of one command.
struct Outcome {
  enum class Kind : u32 { none, read, write, other };
  u16 status = status::success;
  bool happened = false;  ///< the injected fault was carried out, and counts
  bool stored = false;    ///< a write's blocks are in the media
  Kind kind = Kind::none;
  u32 dma_faults = 0;  ///< inside a kernel; a thread's DmaEngine counts its own
  u64 bytes = 0;
  model::InjectedFault injected;

  /// `Counts` has the members of IoTotals.
  template <class Counts>
  DOORBELL_INLINE void add_to(Counts& c) const {
    add_work_to(c);
    if (status != status::success) c.errors += 1;
  }
  /// All but whether it has failed.
  template <class Counts>
  DOORBELL_INLINE void add_work_to(Counts& c) const {
    if (kind == Kind::write) {
      c.writes += 1;
      if (bytes != 0) c.written_bytes += bytes;
    } else {
      if (kind == Kind::read) c.reads += 1;
      else if (kind == Kind::other) c.others += 1;
      if (bytes != 0) c.read_bytes += bytes;
    }
  }
};

/// Draws the fault of command `serial` of queue `qid`, whose cids are tracked in `outstanding`. True if the
/// command ends before its data is looked at.
[[nodiscard]] DOORBELL_INLINE bool ends_early(const model::FaultDraw* faults, u16 qid, u64 serial,
                                              const u64* outstanding, const Sqe& e, Outcome& o) {
  if (faults != nullptr) o.injected = faults->draw(qid, serial, direction_of(e));
  if (o.injected.fault == model::Fault::removal) return true;
  if (is_outstanding(outstanding, e.cid)) {
    o.status = status::cid_conflict;
  } else if (o.injected.fault == model::Fault::error) {
    o.status = injected_status(e);
    o.happened = true;
  } else {
    return false;
  }
  return true;
}

/// Executes a command. Fills everything of `o` but `injected`, which is a fault of the data or none. `Data`
/// moves bytes where the engine runs:
///   shape, recent        the namespace; its RecentWrites
///   keeps()              false: nothing is stored, no data moves
///   blocks(at, bytes, writes)  where the media has them; null: it fails
///   flush(), lost()      of the media
///   walk(e, bytes, want, each)  calls each(place, at, n) for each piece that the PRPs name and this Data
///                        moves; its false is a failed access. A status
///   reaches(place, n, want), give(to, from, n, bad), take(to, from, n)  true: the host's memory is there.
///                        Of what give() moves the byte `bad` is damaged, if there is one
///   compare(e, bytes, media)  a status
///   zero(media, bytes)
template <class Data>
DOORBELL_INLINE void run_command(Data& data, const Sqe& e, Outcome& o) {
  using Kind = Outcome::Kind;
  const CheckedCommand c = check_command(e, data.shape);
  o.status = c.status;
  if (c.status != status::success) return;
  const auto op = static_cast<IoOpcode>(e.opcode);
  const bool reads = op == IoOpcode::read, writes = op == IoOpcode::write, keeps = data.keeps();
  o.kind = reads ? Kind::read : writes || (op == IoOpcode::compare && !keeps) ? Kind::write : Kind::other;
  if (!c.transfers) {
    if (!data.flush()) o.status = status::write_fault;
    return;
  }
  const bool zeroes = op == IoOpcode::write_zeroes;
  if (!keeps) {
    const Access want = reads ? Access::write : Access::read;
    if (!zeroes)
      o.status =
          data.walk(e, c.bytes, want, [&](auto place, u64, u64 n) { return data.reaches(place, n, want); });
    return;
  }
  if (o.injected.fault == model::Fault::stale) {
    o.happened = true;
    return;
  }
  u64 lba = c.lba;
  if (o.injected.fault == model::Fault::misplace) {
    lba = data.recent.other(lba, c.blocks, data.shape.blocks);
    o.happened = lba != c.lba;
  }
  u8* const media = data.blocks(lba * data.shape.lba_bytes, c.bytes, writes || zeroes);
  if (media == nullptr) {
    o.status = writes || zeroes ? status::write_fault : status::unrecovered_read;
    if (!writes) o.kind = Kind::none;
    return;
  }
  if (zeroes) {
    data.zero(media, c.bytes);
    return;
  }
  if (reads) {
    const bool damage = o.injected.fault == model::Fault::corrupt;
    const u64 bad = damage ? o.injected.position(c.bytes) : c.bytes;
    // Behind `bad` the difference wraps.
    o.status = data.walk(e, c.bytes, Access::write,
                         [&](auto to, u64 at, u64 n) { return data.give(to, media + at, n, bad - at); });
    if (damage) o.happened = o.status == status::success;
  } else if (writes) {
    o.status = data.walk(e, c.bytes, Access::read,
                         [&](auto from, u64 at, u64 n) { return data.take(media + at, from, n); });
    o.stored = o.status == status::success;
  } else {
    o.status = data.compare(e, c.bytes, media);
  }
  o.bytes = c.bytes;
  // Copies that others do may find it later: then the commands after this one report it.
  if (data.lost()) o.status = writes ? status::write_fault : status::unrecovered_read;
}

}  // namespace doorbell::nvme
